import type { LeaseholdError } from '../port/index.ts'
import type { Agenda, Task } from './agenda.ts'

/** Something that happens after a while unless it is taken back: a call's or a wait's time limit. */
export interface Timed {
  /** Where its limit is noted. Written by `Timeouts` alone. */
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
 * Time limits by the hundred thousand a second, nearly all of which are taken back. Limits of the
 * same length run out in the order in which they began, so each length has one list, setting and
 * taking back one limit is a few pointers, and only the first of each list is on the agenda.
 */
export class Timeouts {
  readonly #agenda: Agenda
  readonly #lists = new Map<number, TimeoutList>()

  constructor(agenda: Agenda) {
    this.#agenda = agenda
  }

  /** Sets a limit, in place of the one that it may have had. */
  add(timed: Timed, ms: number): void {
    this.remove(timed)
    let list = this.#lists.get(ms)
    if (list === undefined) {
      list = new TimeoutList(() => this.#lists.delete(ms))
      this.#lists.set(ms, list)
    }
    const deadline = this.#agenda.now() + ms
    list.append(timed, deadline)
    if (list.agendaAt === Infinity) this.#agenda.schedule(list, deadline)
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

class TimeoutList implements Task {
  agendaAt = Infinity
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
