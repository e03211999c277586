import type { SimNode } from 'leasehold/testing'
import type { Harness } from '../harness.js'

/**
 * The protected resource: it takes writes with tokens, refuses one that is lower than the highest
 * it has seen, and remembers that across its restarts.
 */
export class Resource {
  readonly node: SimNode
  readonly #harness: Harness
  readonly #highest = new Map<string, number>()

  constructor(harness: Harness) {
    this.#harness = harness
    this.node = harness.client('resource')
  }

  /** Its process dies and another is started; what it has seen is on its disk. */
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
