import type { LeaseholdError } from '../port/index.ts'
import type { Agenda, Task } from './agenda.ts'

/** Something that happens after a while unless it is taken back: a call's or a wait's time limit. */
export abstract class Timed {
  /** The rest is the list's own. */
  list: TimeoutList | undefined = undefined
  before: Timed | undefined = undefined
  after: Timed | undefined = undefined
  deadline = 0

  /** The time is over. It is out of its list already. */
  abstract expire(now: number): void
  /** The client is closed. It is out of its list already. */
  abstract stop(error: LeaseholdError): void
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

  add(timed: Timed, ms: number): void {
    let list = this.#lists.get(ms)
    if (list === undefined) {
      list = new TimeoutList(() => this.#lists.delete(ms))
      this.#lists.set(ms, list)
    }
    list.append(timed, this.#agenda.now() + ms)
    if (list.agendaAt === Infinity) this.#agenda.schedule(list, timed.deadline)
  }

  remove(timed: Timed): void {
    timed.list?.remove(timed)
  }

  stop(error: LeaseholdError): void {
    for (const list of [...this.#lists.values()]) {
      for (let first = list.first; first !== undefined; first = list.first) {
        list.remove(first)
        first.stop(error)
      }
    }
  }
}

export class TimeoutList implements Task {
  agendaAt = Infinity
  first: Timed | undefined = undefined
  #last: Timed | undefined = undefined
  readonly #emptied: () => void

  constructor(emptied: () => void) {
    this.#emptied = emptied
  }

  append(timed: Timed, deadline: number): void {
    timed.list = this
    timed.deadline = deadline
    timed.before = this.#last
    timed.after = undefined
    if (this.#last === undefined) this.first = timed
    else this.#last.after = timed
    this.#last = timed
  }

  remove(timed: Timed): void {
    if (timed.before === undefined) this.first = timed.after
    else timed.before.after = timed.after
    if (timed.after === undefined) this.#last = timed.before
    else timed.after.before = timed.before
    timed.list = undefined
    timed.before = undefined
    timed.after = undefined
  }

  run(now: number): number {
    for (let first = this.first; first !== undefined; first = this.first) {
      if (first.deadline > now) return first.deadline
      this.remove(first)
      first.expire(now)
    }
    this.#emptied()
    return Infinity
  }
}
