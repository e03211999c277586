import type { Random } from '../../port/index.ts'

/** Repeatable randomness: the same seed gives the same numbers. */
export class SeededRandom implements Random {
  #state: number
  #ids = 0

  constructor(seed: number) {
    this.#state = (seed ^ 0x9e3779b9) >>> 0
    // Adjacent seeds must not begin alike.
    for (let i = 0; i < 4; i++) this.next()
  }

  /** Three xorshifts and a multiplication of a Weyl sequence: 32 good bits, cheaply. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  id(): string {
    return `${(++this.#ids).toString(36)}${Math.floor(this.next() * 2 ** 32).toString(36)}`
  }

  /** Another source that does not depend on how much is taken from this one later. */
  fork(): SeededRandom {
    return new SeededRandom(Math.floor(this.next() * 2 ** 32))
  }

  /** From `low` (included) to `high` (excluded). */
  between(low: number, high: number): number {
    return low + (high - low) * this.next()
  }

  integer(low: number, highIncluded: number): number {
    return Math.floor(this.between(low, highIncluded + 1))
  }

  chance(share: number): boolean {
    return this.next() < share
  }

  pick<T>(things: readonly T[]): T {
    return things[Math.floor(this.next() * things.length)]!
  }
}
