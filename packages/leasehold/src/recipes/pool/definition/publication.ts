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
 * What a pool is, agreed upon by all processes: a text in the store, under a lease that nobody keeps
 * and that does not end. The first definition is published; another that differs is refused, since
 * it is more often a mistake than a need; and replaced it is by an explicit call only.
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

  /** What is published, as far as is known here. */
  get known(): Definition | undefined {
    return this.#known
  }

  /** The definition that this process brings: a second one must be the same. */
  want(definition: Definition): void {
    if (this.#wanted === undefined) this.#published = undefined
    else if (definitionJson(this.#wanted) !== definitionJson(definition)) throw this.#otherwise()
    this.#wanted = definition
  }

  seen(view: View): void {
    this.#known = definitionFrom(view.holders(this.#key)[0]?.value) ?? this.#known
  }

  /** Sees to it that there is a definition, and that it is the one that this process brought. */
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
    // It stands behind the old ones, and takes effect in the step that removes the last of these.
    const { claims: all } = await store.read({ key: this.#key })
    for (const { token, lease } of all) {
      if (granted.outcome === 'busy' || token >= granted.token) continue
      try {
        await store.revoke({ target: { lease }, by: holder, why: 'the pool was defined anew' })
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
        `pool ${show(this.#pool)} is not defined: give its resources once, as in leasehold.pool(${show(this.#pool)}, { resources: [{ name: 'gpu-0' }] })`,
      )
    }
    const { store, holder } = this.#client
    const value = definitionJson(this.#wanted)
    const claims = [{ key: this.#key, value }]
    const granted = await store.grant({ holder, ttl: Infinity, claims, ifFree: true })
    if (granted.outcome === 'busy' && granted.ahead[0]?.first.value !== value) {
      throw this.#otherwise()
    }
    this.#known = this.#wanted
  }

  #otherwise(): LeaseholdError {
    return invalid(
      `pool ${show(this.#pool)} is already defined otherwise: leave the definition out to use what is published, or replace it for all with redefine()`,
    )
  }
}
