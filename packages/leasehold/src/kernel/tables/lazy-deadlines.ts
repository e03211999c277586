import { Deadlines } from './deadlines.ts'
import { NONE } from './rows.ts'

/** In the field `checkAt`: no check is scheduled. No deadline is ever 0. */
const NOT_SCHEDULED = 0

/** A table of slots with deadlines. */
export interface DeadlineSource {
  /** When each slot will be checked next; 0 for never. */
  readonly checkAt: { get(slot: number): number; set(slot: number, time: number): void }
  /** When this slot is due; Infinity if it is empty or never due. */
  deadline(slot: number): number
  /** How many slots are used, and a bound above all used slots. */
  readonly count: number
  readonly end: number
}

/**
 * Finds due slots. Moving a deadline to a later time, as a renewal does, only changes a field of the
 * slot: at its old deadline the slot is checked, found alive, and scheduled again.
 */
export class LazyDeadlines {
  readonly #source: DeadlineSource
  readonly #deadlines = new Deadlines()

  constructor(timed: DeadlineSource) {
    this.#source = timed
  }

  /** How many checks are scheduled, including those replaced by an earlier one. */
  get size(): number {
    return this.#deadlines.size
  }

  /** Nothing is due before this time. It may be too early, never too late. */
  get next(): number {
    return this.#deadlines.next
  }

  /** Makes sure that this slot is checked when it is due, or before. */
  schedule(slot: number): void {
    const deadline = this.#source.deadline(slot)
    const checkAt = this.#source.checkAt.get(slot)
    if (deadline === Infinity || (checkAt !== NOT_SCHEDULED && checkAt <= deadline)) return
    this.scheduleAt(slot, deadline)
  }

  /** Checks this slot at that time. */
  scheduleAt(slot: number, time: number): void {
    this.#source.checkAt.set(slot, time)
    this.#deadlines.push(time, slot)
    // A check that was replaced by an earlier one stays in the heap: limit their number.
    if (this.#deadlines.size > 2 * this.#source.count + 1024) this.rescheduleAll()
  }

  rescheduleAll(): void {
    this.#deadlines.clear()
    for (let slot = 0; slot < this.#source.end; slot++) {
      this.#source.checkAt.set(slot, NOT_SCHEDULED)
      this.schedule(slot)
    }
  }

  /**
   * Runs the next check if its time has come. Returns the slot if it is due, NONE if it is alive or
   * empty, and `undefined` if no check is due.
   */
  nextDue(now: number): number | undefined {
    const time = this.#deadlines.next
    if (time > now) return undefined
    const slot = this.#deadlines.nextSlot
    this.#deadlines.pop()
    if (this.#source.checkAt.get(slot) !== time) return NONE
    this.#source.checkAt.set(slot, NOT_SCHEDULED)
    // A slot that was renewed may be due too, but after another one: it is put back in order.
    if (this.#source.deadline(slot) <= time) return slot
    this.schedule(slot)
    return NONE
  }
}
