import { Deadlines } from './deadlines.ts'
import { NONE } from './rows.ts'

/** In the field `lookAt`: nothing among the deadlines. No deadline is ever 0. */
const NOWHERE = 0

/** What has deadlines, by slots. */
export interface Timed {
  /** When each slot will be looked at next; 0 for never. */
  readonly lookAt: { get(slot: number): number; set(slot: number, time: number): void }
  /** When this slot is due, or Infinity if it never is or there is nothing in it. */
  deadline(slot: number): number
  /** How many slots have something in them, and a slot that all of them are below. */
  readonly count: number
  readonly end: number
}

/**
 * Finds what is due. A deadline that moves later, as by a renewal, is only a field of the slot: the
 * slot is looked at when its old deadline comes up, found to live on, and put back.
 */
export class LazyDeadlines {
  readonly #timed: Timed
  readonly #deadlines = new Deadlines()

  constructor(timed: Timed) {
    this.#timed = timed
  }

  /** How many looks are planned, also those that were overtaken by an earlier one. */
  get size(): number {
    return this.#deadlines.size
  }

  /** Nothing is due before this. It may be early, never late. */
  get next(): number {
    return this.#deadlines.next
  }

  /** Sees to it that this slot is looked at when it is due, if not before. */
  schedule(slot: number): void {
    const deadline = this.#timed.deadline(slot)
    const lookAt = this.#timed.lookAt.get(slot)
    if (deadline === Infinity || (lookAt !== NOWHERE && lookAt <= deadline)) return
    this.look(slot, deadline)
  }

  /** Looks at this slot at that time. */
  look(slot: number, time: number): void {
    this.#timed.lookAt.set(slot, time)
    this.#deadlines.push(time, slot)
    // Looks that were overtaken by an earlier one stay until their time: keep them few.
    if (this.#deadlines.size > 2 * this.#timed.count + 1024) this.rescheduleAll()
  }

  rescheduleAll(): void {
    this.#deadlines.clear()
    for (let slot = 0; slot < this.#timed.end; slot++) {
      this.#timed.lookAt.set(slot, NOWHERE)
      this.schedule(slot)
    }
  }

  /**
   * Takes the next look if its time has come. Returns the slot if it is due, NONE if it turned out to
   * live on or to be empty, `undefined` if nothing has come up.
   */
  nextDue(now: number): number | undefined {
    const time = this.#deadlines.next
    if (time > now) return undefined
    const slot = this.#deadlines.nextSlot
    this.#deadlines.pop()
    if (this.#timed.lookAt.get(slot) !== time) return NONE
    this.#timed.lookAt.set(slot, NOWHERE)
    if (this.#timed.deadline(slot) <= now) return slot
    this.schedule(slot)
    return NONE
  }
}
