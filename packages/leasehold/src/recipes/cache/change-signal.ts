import type { Client, PrefixWatch } from '../../client/index.ts'
import type { LeaseholdError, Timer } from '../../port/index.ts'

/** ChangeSignal one who waits when something under a prefix has changed. Nothing is asked meanwhile. */
export class ChangeSignal {
  readonly #watch: PrefixWatch
  readonly #timer: Timer
  readonly #overdue: () => LeaseholdError
  #isOverdue = false
  #waiter: { resolve: () => void; reject: (error: LeaseholdError) => void } | undefined = undefined

  /** With `wait` milliseconds in all; then waiting fails with `overdue`. */
  constructor(client: Client, prefix: string, wait: number, overdue: () => LeaseholdError) {
    this.#overdue = overdue
    const wake = () => this.#waiter?.resolve()
    // One whose client is closed changes too, to find that out.
    this.#watch = client.watchPrefix(prefix, { events: wake, missed: wake, closed: wake })
    // What happened before anybody listened is not told.
    this.#watch.ready.then(wake, wake)
    this.#timer = client.clock.timer(client.clock.now() + wait, () => this.#end(), true)
  }

  /** Fulfilled with the next change after this call. */
  next(): Promise<void> {
    const next = new Promise<void>((resolve, reject) => {
      this.#waiter = { resolve, reject }
      if (this.#isOverdue) reject(this.#overdue())
    })
    // It is waited for only after a look at the store, and not at all if that found what was wanted.
    next.catch(() => {})
    return next
  }

  close(): void {
    this.#timer.cancel()
    this.#watch.close()
  }

  #end(): void {
    this.#isOverdue = true
    this.#waiter?.reject(this.#overdue())
  }
}
