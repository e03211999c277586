import type { Mode } from '../../port/index.ts'
import { IntegerRows, NumberRows, ReferenceField, Slots } from './rows.ts'

/** A claim's mode and limit as one number: exclusive, shared without limit, or the limit. */
export const EXCLUSIVE = -1
const UNLIMITED = 0

/** The claims, one row each. Each is in two lists: its key's by token, and its lease's. */
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
  /** Links the claims of one call, on several keys, in a ring. */
  readonly nextInCall = this.#integers.field()
  readonly modeAndLimit = this.#integers.field()

  readonly slots = new Slots([this.#numbers, this.#integers, this.value])

  setMode(slot: number, mode: Mode, limit: number): void {
    this.modeAndLimit.set(slot, mode === 'exclusive' ? EXCLUSIVE : limit)
  }

  mode(slot: number): Mode {
    return this.modeAndLimit.get(slot) === EXCLUSIVE ? 'exclusive' : 'shared'
  }

  /** 0 for none. */
  limit(slot: number): number {
    return Math.max(this.modeAndLimit.get(slot), UNLIMITED)
  }

  /** Takes `slot` out of the ring of its call. */
  leaveCall(slot: number): void {
    let before = slot
    while (this.nextInCall.get(before) !== slot) before = this.nextInCall.get(before)
    this.nextInCall.set(before, this.nextInCall.get(slot))
    this.nextInCall.set(slot, slot)
  }

  /** Whether this claim and all others of its call hold. */
  allHold(slot: number): boolean {
    for (let at = slot; ; ) {
      if (this.heldSince.get(at) === 0) return false
      at = this.nextInCall.get(at)
      if (at === slot) return true
    }
  }
}
