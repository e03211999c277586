import type { End, Key, Tenure, Time } from '../../port/index.ts'
import { bornOf, leaseId, NONE, slotOf, type Tables } from '../tables/index.ts'

/** A tenure is a row of numbers, next to the holder and the end. */
const [BEFORE, TOKEN, SLOT, BORN, SINCE, ENDED_AT, NUMBERS] = [0, 1, 2, 3, 4, 5, 6] as const

/**
 * The past tenures of all keys, in one ring: who held, from when to when, and how it ended. Each
 * entry has the number of the previous one on the same key, so reading a key's history means walking
 * back, and forgetting is only overwriting. Numbers begin with 1; 0 means none.
 */
export class Tenures {
  readonly #tables: Tables
  readonly #capacity: number
  readonly #perKey: number
  #numbers: Float64Array
  #holder: string[]
  #end: (End | undefined)[]
  #last = 0

  constructor(tables: Tables, capacity: number, perKey: number) {
    this.#tables = tables
    this.#capacity = Math.max(capacity, 1)
    this.#perKey = perKey
    this.#numbers = new Float64Array(this.#capacity * NUMBERS)
    this.#holder = new Array<string>(this.#capacity).fill('')
    this.#end = new Array<End | undefined>(this.#capacity).fill(undefined)
  }

  /** Records the end of a claim that held. It must still be in the tables. */
  add(claim: number, at: Time, end: End): void {
    const { claims, leases } = this.#tables
    const lease = claims.lease.get(claim)
    const since = claims.heldSince.get(claim)
    const token = claims.token.get(claim)
    const born = leases.born.get(lease)
    this.#put(claims.key.get(claim), token, lease, born, leases.holder.get(lease)!, since, at, end)
  }

  /** Whether the tenure of this claim is already recorded. */
  has(claim: number): boolean {
    const { claims, keys } = this.#tables
    const token = claims.token.get(claim)
    let number = keys.tenure.get(claims.key.get(claim))
    for (let seen = 0; this.#isKept(number) && seen < this.#perKey; seen++) {
      const row = (number % this.#capacity) * NUMBERS
      if (this.#numbers[row + TOKEN] === token) return true
      number = this.#numbers[row + BEFORE]!
    }
    return false
  }

  /** Restores a tenure that was read before. */
  restore(name: Key, tenure: Tenure): void {
    const key = this.#tables.keys.ensure(name)
    const { token, lease, holder, heldSince, endedAt, end } = tenure
    this.#put(key, token, slotOf(lease), bornOf(lease), holder, heldSince, endedAt, end)
  }

  /** Adds a tenure whose key was forgotten: it still takes the place of an older one. */
  addForgotten(): void {
    this.#last++
  }

  /** Copies the other ring. */
  copy(from: Tenures): void {
    this.#numbers = from.#numbers.slice()
    this.#holder = from.#holder.slice()
    this.#end = from.#end.slice()
    this.#last = from.#last
  }

  /** All kept tenures, oldest first; `undefined` for one whose key was forgotten. */
  *all(): Generator<readonly [Key, Tenure] | undefined> {
    const { keys } = this.#tables
    const keyOf = new Int32Array(this.#capacity).fill(NONE)
    for (let key = 0; key < keys.slots.end; key++) {
      if (keys.name.get(key) === undefined) continue
      let number = keys.tenure.get(key)
      for (; this.#isKept(number); number = this.#before(number)) {
        keyOf[number % this.#capacity] = key
      }
    }
    const first = Math.max(1, this.#last - this.#capacity + 1)
    for (let number = first; number <= this.#last; number++) {
      const key = keyOf[number % this.#capacity]!
      yield key === NONE ? undefined : [keys.name.get(key)!, this.#read(number)]
    }
  }

  /** The tenures of a key, latest first. */
  of(key: number): Tenure[] {
    const tenures: Tenure[] = []
    let number = this.#tables.keys.tenure.get(key)
    while (this.#isKept(number) && tenures.length < this.#perKey) {
      tenures.push(this.#read(number))
      number = this.#before(number)
    }
    return tenures
  }

  #before(number: number): number {
    return this.#numbers[(number % this.#capacity) * NUMBERS + BEFORE]!
  }

  #read(number: number): Tenure {
    const index = number % this.#capacity
    const row = index * NUMBERS
    return {
      token: this.#numbers[row + TOKEN]!,
      holder: this.#holder[index]!,
      lease: leaseId(this.#numbers[row + SLOT]!, this.#numbers[row + BORN]!),
      heldSince: this.#numbers[row + SINCE]!,
      endedAt: this.#numbers[row + ENDED_AT]!,
      end: this.#end[index]!,
    }
  }

  #isKept(number: number): boolean {
    return number > 0 && number > this.#last - this.#capacity
  }

  #put(
    key: number,
    token: number,
    slot: number,
    born: number,
    holder: string,
    since: Time,
    endedAt: Time,
    end: End,
  ): void {
    const { keys } = this.#tables
    const number = ++this.#last
    const index = number % this.#capacity
    const row = index * NUMBERS
    this.#numbers[row + BEFORE] = keys.tenure.get(key)
    this.#numbers[row + TOKEN] = token
    this.#numbers[row + SLOT] = slot
    this.#numbers[row + BORN] = born
    this.#numbers[row + SINCE] = since
    this.#numbers[row + ENDED_AT] = endedAt
    this.#holder[index] = holder
    this.#end[index] = end
    keys.tenure.set(key, number)
  }
}
