import type { LeaseStore, RevokeTarget } from 'leasehold/port'
import type { SeededRandom, SimNode } from 'leasehold/testing'
import type { Harness } from '../world/harness.js'

/** Reads through the client what others hold, and takes it from them: at once, or with a period. */
export class Breaker {
  readonly node: SimNode
  readonly #harness: Harness
  readonly #random: SeededRandom
  readonly #store: LeaseStore
  readonly #keys: readonly string[]
  #reasons = 1
  #stopping = false

  constructor(harness: Harness, name: string, keys: readonly string[]) {
    this.#harness = harness
    this.#keys = keys
    this.node = harness.client(name)
    this.#random = this.node.random
    this.#store = harness.store(this.node)
  }

  start(): void {
    this.#later(this.#random.between(500, 5000), () => this.#again())
  }

  stop(): void {
    this.#stopping = true
  }

  #again(): void {
    if (this.#stopping) return
    this.#force().catch(() => undefined)
    this.#later(this.#random.between(500, 4000), () => this.#again())
  }

  async #force(): Promise<void> {
    const random = this.#random
    const { keys } = await this.#store.read({ prefix: '' })
    const held = keys.filter(({ key }) => this.#keys.includes(key))
    const victim = held.length === 0 ? undefined : random.pick(random.pick(held).claims)
    if (!victim || this.#stopping) return
    const { key, token, lease } = victim
    const target: RevokeTarget = random.pick<RevokeTarget>([
      { lease },
      { lease },
      { lease },
      { key, token },
      { key },
      { prefix: key },
    ])
    // A period longer than any lease lives must be as safe for the holder as an expiry.
    const after = 'lease' in target ? random.pick([undefined, 50, 700, 3500, 4500]) : undefined
    const why = `${this.node.name}'s reason ${this.#reasons++}`
    await this.#store.revoke({ target, by: this.node.name, why, after, request: random.id() })
  }

  #later(ms: number, run: () => void): void {
    this.#harness.world.after(ms, this.node.guard(run))
  }
}
