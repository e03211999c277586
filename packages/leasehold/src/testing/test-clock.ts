// Not the global one: a test runner's fake timers may have replaced it before this file is loaded.
import { setImmediate as realSetImmediate } from 'node:timers'
import type { Clock, Timer } from '../port/index.ts'

interface Pending {
  readonly time: number
  readonly order: number
  readonly run: () => void
}

/**
 * A clock that a test moves. Nothing happens by itself: `advance` lets time pass, timer by timer in
 * order, and lets promises settle after each. It uses no timers that a test runner can fake, so it
 * works together with fake timers.
 */
export class TestClock implements Clock {
  #now: number
  #asleep = 0
  #order = 0
  #deferred = 0
  readonly #pending = new Set<Pending>()

  /** The start time; positive. */
  constructor(start = 1_000_000) {
    this.#now = start
  }

  now(): number {
    return this.#now
  }

  asleep(): number {
    return this.#asleep
  }

  timer(time: number, run: () => void): Timer {
    const pending = { time, order: this.#order++, run }
    if (time < Infinity) this.#pending.add(pending)
    return { cancel: () => void this.#pending.delete(pending) }
  }

  defer(run: () => void): void {
    this.#deferred++
    realSetImmediate(() => {
      this.#deferred--
      run()
    })
  }

  /** Lets time pass. Fulfilled when everything that was due has happened. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms
    await this.settle()
    for (let next = this.#next(end); next; next = this.#next(end)) {
      this.#pending.delete(next)
      this.#now = Math.max(this.#now, next.time)
      next.run()
      await this.settle()
    }
    this.#now = end
    await this.settle()
  }

  /**
   * Time passes, but this process does not notice: it was stalled, and no timer could run. What was
   * due in the meantime happens with the next `advance`, even by 0.
   */
  stall(ms: number): void {
    this.#now += ms
  }

  /** The machine is suspended: `now` stops and `asleep` continues. */
  sleep(ms: number): void {
    this.#asleep += ms
  }

  /** Lets everything happen that needs no time: promises, and deferred calls. */
  async settle(): Promise<void> {
    do await new Promise<void>((resolve) => realSetImmediate(resolve))
    while (this.#deferred > 0)
  }

  #next(end: number): Pending | undefined {
    let first: Pending | undefined
    for (const pending of this.#pending) {
      if (pending.time > end) continue
      const earlier =
        !first ||
        pending.time < first.time ||
        (pending.time === first.time && pending.order < first.order)
      if (earlier) first = pending
    }
    return first
  }
}
