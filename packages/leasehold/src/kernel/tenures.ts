import type { End, Key, Tenure, Time } from '../port/index.ts'
import { bornOf, leaseId, slotOf } from './lease-id.ts'
import type { Tables } from './tables.ts'

/**
 * The past tenures of all keys, in one ring: who held, from when to when, and how it ended. Each
 * entry knows the number of the one before it on the same key, so that a key's history is read by
 * walking back, and forgetting is only overwriting. Numbers begin with 1; 0 is none.
 */
export class Tenures {
  readonly #tables: Tables
  readonly #capacity: number
  readonly #perKey: number
  readonly #token: Float64Array
  readonly #born: Float64Array
  readonly #since: Float64Array
  readonly #endedAt: Float64Array
  readonly #before: Float64Array
  readonly #slot: Int32Array
  readonly #holder: string[]
  readonly #end: (End | undefined)[]
  #last = 0

  constructor(tables: Tables, capacity: number, perKey: number) {
    this.#tables = tables
    this.#capacity = Math.max(capacity, 1)
    this.#perKey = perKey
    this.#token = new Float64Array(this.#capacity)
    this.#born = new Float64Array(this.#capacity)
    this.#since = new Float64Array(this.#capacity)
    this.#endedAt = new Float64Array(this.#capacity)
    this.#before = new Float64Array(this.#capacity)
    this.#slot = new Int32Array(this.#capacity)
    this.#holder = new Array<string>(this.#capacity).fill('')
    this.#end = new Array<End | undefined>(this.#capacity).fill(undefined)
  }

  /** A claim that held comes to its end; it must still stand in the tables. */
  add(claim: number, at: Time, end: End): void {
    const { claims, leases } = this.#tables
    const lease = claims.lease.get(claim)
    const index = this.#take(claims.key.get(claim))
    this.#token[index] = claims.token.get(claim)
    this.#slot[index] = lease
    this.#born[index] = leases.born.get(lease)
    this.#holder[index] = leases.holder.get(lease)!
    this.#since[index] = claims.heldSince.get(claim)
    this.#endedAt[index] = at
    this.#end[index] = end
  }

  /** Whether the tenure of this claim is known already. */
  has(claim: number): boolean {
    const { claims } = this.#tables
    const token = claims.token.get(claim)
    return this.of(claims.key.get(claim)).some((tenure) => tenure.token === token)
  }

  /** Puts back a tenure that was read before. */
  restore(name: Key, tenure: Tenure): void {
    const index = this.#take(this.#tables.keys.ensure(name))
    this.#token[index] = tenure.token
    this.#slot[index] = slotOf(tenure.lease)
    this.#born[index] = bornOf(tenure.lease)
    this.#holder[index] = tenure.holder
    this.#since[index] = tenure.heldSince
    this.#endedAt[index] = tenure.endedAt
    this.#end[index] = tenure.end
  }

  /** The tenures of a key, the latest first. */
  of(key: number): Tenure[] {
    const tenures: Tenure[] = []
    let number = this.#tables.keys.tenure.get(key)
    while (number > this.#last - this.#capacity && number > 0 && tenures.length < this.#perKey) {
      const index = number % this.#capacity
      tenures.push({
        token: this.#token[index]!,
        holder: this.#holder[index]!,
        lease: leaseId(this.#slot[index]!, this.#born[index]!),
        heldSince: this.#since[index]!,
        endedAt: this.#endedAt[index]!,
        end: this.#end[index]!,
      })
      number = this.#before[index]!
    }
    return tenures
  }

  /** The index of a new entry, linked as the latest of this key. */
  #take(key: number): number {
    const { keys } = this.#tables
    const number = ++this.#last
    const index = number % this.#capacity
    this.#before[index] = keys.tenure.get(key)
    keys.tenure.set(key, number)
    return index
  }
}
