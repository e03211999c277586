import type { SimNode } from 'leasehold/testing'
import type { Scene } from '../scene.js'

/**
 * The protected resource: it takes writes with tokens, refuses one that is lower than the highest
 * it has seen, and remembers that across its restarts.
 */
export class Resource {
  readonly node: SimNode
  readonly #scene: Scene
  readonly #highest = new Map<string, number>()

  constructor(scene: Scene) {
    this.#scene = scene
    this.node = scene.client('resource')
  }

  /** Its process dies and another is started; what it has seen is on its disk. */
  restart(): void {
    this.node.crash()
    this.node.start(() => this.#restarted())
  }

  write(from: SimNode, key: string, token: number): void {
    const sent = this.#scene.world.now
    this.#scene.network.send(from, this.node, () => {
      const accepted = token >= (this.#highest.get(key) ?? 0)
      if (accepted) this.#highest.set(key, token)
      this.#scene.wrote({ key, token, sent, arrived: this.#scene.world.now, accepted })
    })
  }

  #restarted(): void {
    this.#scene.world.note('resource', 'restarts')
  }
}
