import type { Mode } from '../port/index.ts'
import { IntegerRows, NumberRows, ReferenceField, Slots } from './rows.ts'

/** A claim's standing is one number: that it is exclusive, that it is shared, or the limit. */
export const EXCLUSIVE = -1
const UNLIMITED = 0

/** The claims, a row each, in two lists: that of their key by token, and that of their lease. */
export class ClaimTable {
  readonly #numbers = new NumberRows(3)
  readonly #integers = new IntegerRows(8)
  readonly token = this.#numbers.field()
  readonly claimedAt = this.#numbers.field()
  /** 0 while the claim waits. */
  readonly heldSince = this.#numbers.field()
  readonly value = new ReferenceField<string>()
  readonly lease = this.#integers.field()
  readonly key = this.#integers.field()
  readonly nextOnKey = this.#integers.field()
  readonly previousOnKey = this.#integers.field()
  readonly nextOfLease = this.#integers.field()
  readonly previousOfLease = this.#integers.field()
  /** The claims that were made in one call, on several keys, are a ring. */
  readonly together = this.#integers.field()
  readonly standing = this.#integers.field()

  readonly slots = new Slots([this.#numbers, this.#integers, this.value])

  setMode(slot: number, mode: Mode, limit: number): void {
    this.standing.set(slot, mode === 'exclusive' ? EXCLUSIVE : limit)
  }

  mode(slot: number): Mode {
    return this.standing.get(slot) === EXCLUSIVE ? 'exclusive' : 'shared'
  }

  /** 0 for none. */
  limit(slot: number): number {
    return Math.max(this.standing.get(slot), UNLIMITED)
  }

  /** Takes `slot` out of the ring of claims that were made with it. */
  leaveTogether(slot: number): void {
    let before = slot
    while (this.together.get(before) !== slot) before = this.together.get(before)
    this.together.set(before, this.together.get(slot))
    this.together.set(slot, slot)
  }

  /** Whether this claim and all that were made with it hold. */
  allHold(slot: number): boolean {
    for (let at = slot; ; ) {
      if (this.heldSince.get(at) === 0) return false
      at = this.together.get(at)
      if (at === slot) return true
    }
  }
}
