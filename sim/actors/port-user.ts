import type { LeaseStore } from 'leasehold/port'
import type { SeededRandom, SimNode } from 'leasehold/testing'
import type { Harness } from '../world/harness.js'

/** Uses the port directly, one step after the other. It can be killed and restarted. */
export abstract class PortUser {
  readonly node: SimNode
  protected readonly harness: Harness
  protected readonly random: SeededRandom
  protected store!: LeaseStore
  protected isStopping = false
  readonly #restMax: number

  /** It pauses for up to this many milliseconds between steps, times the world's restFactor. */
  constructor(harness: Harness, name: string, restMax: number) {
    this.harness = harness
    this.node = harness.client(name)
    this.random = this.node.random
    this.#restMax = restMax
  }

  /** Its process loses its memory. */
  protected abstract forget(): void
  protected abstract step(): void

  start(): void {
    this.store = this.harness.store(this.node)
    this.forget()
    this.later(this.random.between(0, 300), () => this.#again())
  }

  crash(): void {
    if (!this.node.running) return
    this.harness.world.note(this.node.name, 'is killed')
    this.node.crash()
    this.harness.world.after(this.random.between(10, 3000), () => this.restart())
  }

  restart(): void {
    if (!this.node.running && !this.isStopping) this.node.start(() => this.start())
  }

  stop(): void {
    this.isStopping = true
  }

  protected later(ms: number, run: () => void): void {
    this.harness.world.after(ms, this.node.guard(run))
  }

  #again(): void {
    if (this.isStopping) return
    this.step()
    const rest = this.random.between(20, this.#restMax) * this.harness.setup.restFactor
    this.later(rest, () => this.#again())
  }
}
