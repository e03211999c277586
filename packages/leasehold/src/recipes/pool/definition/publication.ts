import type { Client, View } from '../../../client/index.ts'
import { invalid, type Key, type LeaseholdError, show } from '../../../port/index.ts'
import { isGone } from '../../refusals.ts'
import {
  type Definition,
  definitionFrom,
  definitionJson,
  definitionOf,
  type PoolDefinition,
} from './definition.ts'

/**
 * The definition that all processes agree on: a value in the store, under a lease that does not
 * end. The first definition is published. A different one is refused, because it is usually a
 * mistake; only `redefine()` replaces it.
 */
export class Publication {
  readonly #client: Client
  readonly #pool: string
  readonly #key: Key
  #wanted: Definition | undefined
  #known: Definition | undefined = undefined
  #published: Promise<void> | undefined = undefined

  constructor(client: Client, pool: string, key: Key) {
    this.#client = client
    this.#pool = pool
    this.#key = key
  }

  /** The published definition, as far as this process knows. */
  get known(): Definition | undefined {
    return this.#known
  }

  /** The definition that this process uses. A second one must be equal. */
  want(definition: Definition): void {
    if (this.#wanted === undefined) this.#published = undefined
    else if (definitionJson(this.#wanted) !== definitionJson(definition)) throw this.#conflict()
    this.#wanted = definition
  }

  seen(view: View): void {
    this.#known = definitionFrom(view.holders(this.#key)[0]?.value) ?? this.#known
  }

  /** Resolves when a definition is published and equals the one of this process. */
  ready(): Promise<void> {
    this.#published ??= this.#publish().catch((error) => {
      this.#published = undefined
      throw error
    })
    return this.#published
  }

  async replace(given: PoolDefinition): Promise<void> {
    const next = definitionOf(given)
    const { store, holder } = this.#client
    const claims = [{ key: this.#key, value: definitionJson(next) }]
    const granted = await store.grant({ holder, ttl: Infinity, claims })
    // It waits behind the old ones, and takes effect when the last of them is removed.
    const { claims: all } = await store.read({ key: this.#key })
    for (const { token, lease } of all) {
      if (granted.outcome === 'busy' || token >= granted.token) continue
      try {
        await store.revoke({ target: { lease }, by: holder, why: 'the pool was redefined' })
      } catch (error) {
        if (!isGone(error)) throw error
      }
    }
    this.#wanted = next
    this.#known = next
    this.#published = Promise.resolve()
  }

  async #publish(): Promise<void> {
    if (this.#wanted === undefined) {
      if (this.#known !== undefined) return
      throw invalid(
        `pool ${show(this.#pool)} is not defined. Define its resources once, as in leasehold.pool(${show(this.#pool)}, { resources: [{ name: 'gpu-0' }] })`,
      )
    }
    const { store, holder } = this.#client
    const value = definitionJson(this.#wanted)
    const claims = [{ key: this.#key, value }]
    const granted = await store.grant({ holder, ttl: Infinity, claims, ifFree: true })
    if (granted.outcome === 'busy' && granted.ahead[0]?.first.value !== value) {
      throw this.#conflict()
    }
    this.#known = this.#wanted
  }

  #conflict(): LeaseholdError {
    return invalid(
      `pool ${show(this.#pool)} already has a different definition. Leave the definition out to use that one, or replace it for all processes with redefine()`,
    )
  }
}
