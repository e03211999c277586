import { isLeaseholdError, type Leasehold } from 'leasehold'
import type { SimNode } from 'leasehold/testing'
import type { RecipeActor, RecipeHarness } from './harness.js'
import type { MakeScenario, RecipeScenario } from './scenario.js'

const READERS = ['ann', 'ben', 'cat']

interface Loading {
  readonly signal: AbortSignal
  readonly node: SimNode
  readonly incarnation: number
}

/**
 * Several processes read through one cache. At most one loads at a time, as far as loaders can
 * tell. A value stored by a loader that had lost its turn never hides a later one.
 */
export const cache: MakeScenario = (harness) => new CacheScenario(harness)

class CacheScenario implements RecipeScenario {
  readonly #harness: RecipeHarness
  #loading: Loading[] = []
  #version = 0
  /** The highest version that any process got, and when. */
  #newest = 0
  #healedAt = Infinity
  #served = 0

  constructor(harness: RecipeHarness) {
    this.#harness = harness
    for (const name of READERS) harness.add(this.#reader(name))
  }

  check(): void {
    const awake = this.#loading.filter(
      ({ node, incarnation, signal }) =>
        node.incarnation === incarnation && node.running && !node.paused && !signal.aborted,
    )
    if (awake.length > 1) {
      const who = awake.map(({ node }) => node.name).join(' and ')
      this.#harness.violated('one loader', `${who} load at once`)
    }
  }

  healed(): void {
    this.#healedAt = this.#harness.world.now
    this.#served = 0
  }

  finish(): void {
    if (this.#served < READERS.length) {
      this.#harness.violated('somebody is served', `${this.#served} were served in a healed world`)
    }
  }

  #reader(name: string): RecipeActor {
    const node = this.#harness.machine(name)
    const start = (leasehold: Leasehold): void => {
      this.#read(leasehold, node).catch((error) => this.#harness.world.fail(error))
    }
    return { node, start }
  }

  async #read(leasehold: Leasehold, node: SimNode): Promise<void> {
    const harness = this.#harness
    const { random } = node
    const entries = leasehold.cache<number>('prices', { ttl: 1500, loadTtl: 600 })
    for (;;) {
      await harness.rest(node, random.between(20, 500))
      const begun = this.#newest
      try {
        const value = await entries.get('gold', ({ signal }) => this.#load(node, signal))
        harness.operations++
        if (harness.world.now > this.#healedAt) this.#served++
        // A version that any process got before this read started must not be hidden by an older
        // one.
        if (value < begun) {
          harness.violated('no older value', `version ${value} was given after version ${begun}`)
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
    this.check()
    await this.#harness.rest(node, node.random.between(10, this.#harness.healed ? 200 : 2500))
    this.#loading = this.#loading.filter((other) => other !== loading)
    return version
  }
}
