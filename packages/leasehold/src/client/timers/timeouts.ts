import type { LeaseholdError } from '../../port/index.ts'
import type { TimerQueue, TimerTask } from './timer-queue.ts'

/**
 * Something with a time limit: a call, or a wait. It has at most one limit at a time. Its fields are
 * its place in the list of all limits of the same length, and only `Timeouts` uses them: an object of
 * their own for each limit would be one more for each call.
 */
export abstract class Timed {
  list: TimeoutList | undefined = undefined
  deadline = Infinity
  before: Timed | undefined = undefined
  after: Timed | undefined = undefined
  /** The time is over. */
  abstract expire(now: number): void
  /** The client is closed. */
  abstract stop(error: LeaseholdError): void
}

/**
 * Time limits by the hundred thousand a second, nearly all of which are removed before they run out.
 * Limits of the same length run out in the order in which they began. So each length has one list,
 * adding or removing a limit changes a few pointers, and only each list is in the timer queue.
 */
export class Timeouts {
  readonly #timers: TimerQueue
  readonly #lists = new Map<number, TimeoutList>()

  constructor(timers: TimerQueue) {
    this.#timers = timers
  }

  /**
   * Sets a limit that begins now, and replaces the one before. `Infinity` is no limit. Whole
   * milliseconds, because the rest of a limit is a different number each time, and a list lasts until
   * its time has come.
   */
  add(timed: Timed, ms: number, now: number): void {
    this.remove(timed)
    const length = Math.ceil(ms)
    let list = this.#lists.get(length)
    if (list === undefined) {
      const made = new TimeoutList(() => {
        if (this.#lists.get(length) === made) this.#lists.delete(length)
      })
      this.#lists.set(length, made)
      list = made
    }
    timed.deadline = now + length
    list.append(timed)
    if (list.queuedAt === Infinity) this.#timers.schedule(list, timed.deadline)
  }

  remove(timed: Timed): void {
    timed.list?.remove(timed)
  }

  stop(error: LeaseholdError): void {
    for (const list of [...this.#lists.values()]) {
      for (let { first } = list; first !== undefined; { first } = list) {
        list.remove(first)
        first.stop(error)
      }
    }
  }
}

class TimeoutList implements TimerTask {
  queuedAt = Infinity
  first: Timed | undefined = undefined
  #last: Timed | undefined = undefined
  readonly #emptied: () => void

  constructor(emptied: () => void) {
    this.#emptied = emptied
  }

  append(timed: Timed): void {
    const before = this.#last
    if (before === undefined) this.first = timed
    else before.after = timed
    this.#last = timed
    timed.list = this
    timed.before = before
  }

  /**
   * A removed limit points to no other. Otherwise one that is in the old generation would keep the
   * next, which would follow it there, and so on until the garbage collector collects the old
   * generation.
   */
  remove(timed: Timed): void {
    const { before, after } = timed
    if (before === undefined) this.first = after
    else before.after = after
    if (after === undefined) this.#last = before
    else after.before = before
    timed.list = undefined
    timed.before = undefined
    timed.after = undefined
  }

  run(now: number): number {
    for (let { first } = this; first !== undefined; { first } = this) {
      if (first.deadline > now) return first.deadline
      this.remove(first)
      first.expire(now)
    }
    this.#emptied()
    return Infinity
  }
}
