import type { Client, PrefixWatch } from '../../client/index.ts'
import type { LeaseholdError, Timer } from '../../port/index.ts'

/** Signals when something under a prefix has changed. Makes no store calls while waiting. */
export class ChangeSignal {
  readonly #watch: PrefixWatch
  readonly #timer: Timer
  readonly #overdue: () => LeaseholdError
  #isOverdue = false
  #waiter: { resolve: () => void; reject: (error: LeaseholdError) => void } | undefined = undefined

  /** Waits at most `wait` milliseconds in total, then rejects with the error of `overdue`. */
  constructor(client: Client, prefix: string, wait: number, overdue: () => LeaseholdError) {
    this.#overdue = overdue
    const wake = () => this.#waiter?.resolve()
    // If the client is closed, the waiter wakes up and finds out.
    this.#watch = client.watchPrefix(prefix, { events: wake, missed: wake, closed: wake })
    // Changes from before the watch was ready are not reported, so look once when it is.
    this.#watch.ready.then(wake, wake)
    this.#timer = client.clock.timer(client.clock.now() + wait, () => this.#end(), true)
  }

  /** Resolves at the next change after this call. */
  next(): Promise<void> {
    const next = new Promise<void>((resolve, reject) => {
      this.#waiter = { resolve, reject }
      if (this.#isOverdue) reject(this.#overdue())
    })
    // The caller reads the store first and may never await this promise.
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
