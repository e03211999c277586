import type { Clock, Timer } from '../../port/index.ts'

const DAY_MS = 86_400_000

/**
 * Keeps the process running while a caller waits. Heartbeats and deadlines do not: a program that
 * only holds a lock should end, and its leases with it.
 */
export class KeepAlive {
  readonly #clock: Clock
  #waits = 0
  #timer!: Timer

  constructor(clock: Clock) {
    this.#clock = clock
  }

  enter(): void {
    if (++this.#waits === 1) this.#arm()
  }

  leave(): void {
    if (--this.#waits === 0) this.#timer.cancel()
  }

  /** Keeps the process running until the promise is settled. */
  during(promise: Promise<unknown>): void {
    this.enter()
    const leave = () => this.leave()
    promise.then(leave, leave)
  }

  #arm(): void {
    this.#timer = this.#clock.timer(this.#clock.now() + DAY_MS, () => this.#arm(), true)
  }
}
