import type { SimNode } from 'leasehold/testing'
import type { Harness } from '../world/harness.js'

/**
 * The protected resource: it accepts writes with tokens, refuses tokens below the highest it has
 * seen, and remembers the highest across restarts.
 */
export class Resource {
  readonly node: SimNode
  readonly #harness: Harness
  readonly #highest = new Map<string, number>()

  constructor(harness: Harness) {
    this.#harness = harness
    this.node = harness.client('resource')
  }

  /** Its process dies and another starts; the highest token is on its disk. */
  restart(): void {
    this.node.crash()
    this.node.start(() => this.#restarted())
  }

  write(from: SimNode, key: string, token: number): void {
    const sent = this.#harness.world.now
    this.#harness.network.send(from, this.node, () => {
      const accepted = token >= (this.#highest.get(key) ?? 0)
      if (accepted) this.#highest.set(key, token)
      this.#harness.wrote({ key, token, sent, arrived: this.#harness.world.now, accepted })
    })
  }

  #restarted(): void {
    this.#harness.world.note('resource', 'restarts')
  }
}
