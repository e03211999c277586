import type { LeaseStore } from 'leasehold/port'
import type { SeededRandom, SimNode } from 'leasehold/testing'
import type { Scene } from '../scene.js'

/** Uses the port directly, one step after the other. It can be killed, and is started again. */
export abstract class PortUser {
  readonly node: SimNode
  protected readonly scene: Scene
  protected readonly random: SeededRandom
  protected store!: LeaseStore
  protected isStopping = false
  readonly #restMax: number

  /** It rests for up to so many milliseconds between two steps, times the leisure of the world. */
  constructor(scene: Scene, name: string, restMax: number) {
    this.scene = scene
    this.node = scene.client(name)
    this.random = this.node.random
    this.#restMax = restMax
  }

  /** What its process remembers is gone. */
  protected abstract forget(): void
  protected abstract step(): void

  start(): void {
    this.store = this.scene.store(this.node)
    this.forget()
    this.later(this.random.between(0, 300), () => this.#again())
  }

  crash(): void {
    if (!this.node.running) return
    this.scene.world.note(this.node.name, 'is killed')
    this.node.crash()
    this.scene.world.after(this.random.between(10, 3000), () => this.restart())
  }

  restart(): void {
    if (!this.node.running && !this.isStopping) this.node.start(() => this.start())
  }

  stop(): void {
    this.isStopping = true
  }

  protected later(ms: number, run: () => void): void {
    this.scene.world.after(ms, this.node.guard(run))
  }

  #again(): void {
    if (this.isStopping) return
    this.step()
    const rest = this.random.between(20, this.#restMax) * this.scene.casting.leisure
    this.later(rest, () => this.#again())
  }
}
