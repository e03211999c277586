import type { LeaseholdError } from '../../port/index.ts'
import type { TimerQueue, TimerTask } from './timer-queue.ts'

/** Something with a time limit: a call, or a wait. */
export interface Timed {
  /** Its limit. Only `Timeouts` writes it. */
  timeout: Timeout | undefined
  /** The time is over. */
  expire(now: number): void
  /** The client is closed. */
  stop(error: LeaseholdError): void
}

/** One limit: its place in the list of all limits of the same length. */
interface Timeout {
  readonly timed: Timed
  readonly list: TimeoutList
  readonly deadline: number
  before: Timeout | undefined
  after: Timeout | undefined
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

  /** Sets a limit, and replaces the one before. `Infinity` is no limit. */
  add(timed: Timed, ms: number): void {
    this.remove(timed)
    let list = this.#lists.get(ms)
    if (list === undefined) {
      list = new TimeoutList(() => this.#lists.delete(ms))
      this.#lists.set(ms, list)
    }
    const deadline = this.#timers.now() + ms
    list.append(timed, deadline)
    if (list.queuedAt === Infinity) this.#timers.schedule(list, deadline)
  }

  remove(timed: Timed): void {
    if (timed.timeout !== undefined) timed.timeout.list.remove(timed.timeout)
  }

  stop(error: LeaseholdError): void {
    for (const list of [...this.#lists.values()]) {
      for (let first = list.first; first !== undefined; first = list.first) {
        list.remove(first)
        first.timed.stop(error)
      }
    }
  }
}

class TimeoutList implements TimerTask {
  queuedAt = Infinity
  first: Timeout | undefined = undefined
  #last: Timeout | undefined = undefined
  readonly #emptied: () => void

  constructor(emptied: () => void) {
    this.#emptied = emptied
  }

  append(timed: Timed, deadline: number): void {
    const before = this.#last
    const timeout: Timeout = { timed, list: this, deadline, before, after: undefined }
    if (before === undefined) this.first = timeout
    else before.after = timeout
    this.#last = timeout
    timed.timeout = timeout
  }

  remove(timeout: Timeout): void {
    const { before, after } = timeout
    if (before === undefined) this.first = after
    else before.after = after
    if (after === undefined) this.#last = before
    else after.before = before
    timeout.timed.timeout = undefined
  }

  run(now: number): number {
    for (let first = this.first; first !== undefined; first = this.first) {
      if (first.deadline > now) return first.deadline
      this.remove(first)
      first.timed.expire(now)
    }
    this.#emptied()
    return Infinity
  }
}
