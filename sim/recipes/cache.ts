import { isLeaseholdError, type Leasehold } from 'leasehold'
import type { SimNode } from 'leasehold/testing'
import type { Drama, MakeDrama } from './drama.js'
import type { Player, Stage } from './stage.js'

const READERS = ['ann', 'ben', 'cat']

interface Loading {
  readonly signal: AbortSignal
  readonly node: SimNode
  readonly incarnation: number
}

/**
 * Several processes read through one cache. At most one loads at a time, as far as loaders can tell;
 * and what a loader stored that had lost its turn never hides what a later one stored.
 */
export const cache: MakeDrama = (stage) => new CacheDrama(stage)

class CacheDrama implements Drama {
  readonly #stage: Stage
  #loading: Loading[] = []
  #version = 0
  /** The highest version that anybody was given, and when. */
  #newest = 0
  #healedAt = Infinity
  #served = 0

  constructor(stage: Stage) {
    this.#stage = stage
    for (const name of READERS) stage.enter(this.#reader(name))
  }

  look(): void {
    const awake = this.#loading.filter(
      ({ node, incarnation, signal }) =>
        node.incarnation === incarnation && node.running && !node.paused && !signal.aborted,
    )
    if (awake.length > 1) {
      const who = awake.map(({ node }) => node.name).join(' and ')
      this.#stage.violated('one loader', `${who} load at once`)
    }
  }

  healed(): void {
    this.#healedAt = this.#stage.world.now
    this.#served = 0
  }

  finish(): void {
    if (this.#served < READERS.length) {
      this.#stage.violated('somebody is served', `${this.#served} were served in a healed world`)
    }
  }

  #reader(name: string): Player {
    const node = this.#stage.machine(name)
    const start = (leasehold: Leasehold): void => {
      this.#read(leasehold, node).catch((error) => this.#stage.world.fail(error))
    }
    return { node, start }
  }

  async #read(leasehold: Leasehold, node: SimNode): Promise<void> {
    const stage = this.#stage
    const { random } = node
    const entries = leasehold.cache<number>('prices', { ttl: 1500, loadTtl: 600 })
    for (;;) {
      await stage.rest(node, random.between(20, 500))
      const begun = this.#newest
      try {
        const value = await entries.get('gold', ({ signal }) => this.#load(node, signal))
        stage.acts++
        if (stage.world.now > this.#healedAt) this.#served++
        // Whatever was given to anybody before this read began must not be hidden by an older one.
        if (value < begun) {
          stage.violated('no older value', `version ${value} was given after version ${begun}`)
        }
        this.#newest = Math.max(this.#newest, value)
      } catch (error) {
        if (!isLeaseholdError(error)) throw error
      }
    }
  }

  async #load(node: SimNode, signal: AbortSignal): Promise<number> {
    const loading = { signal, node, incarnation: node.incarnation }
    const version = ++this.#version
    this.#loading.push(loading)
    this.look()
    await this.#stage.rest(node, node.random.between(10, this.#stage.healed ? 200 : 2500))
    this.#loading = this.#loading.filter((other) => other !== loading)
    return version
  }
}
