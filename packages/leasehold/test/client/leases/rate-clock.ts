import type { Clock, Timer } from '../../../src/port/index.ts'

/** A clock that runs faster or slower than the true time, as a machine's does. */
export class RateClock implements Clock {
  readonly #truth: Clock
  readonly #rate: number
  readonly #start: number
  readonly #offset: number

  constructor(truth: Clock, rate: number, offset = 0) {
    this.#truth = truth
    this.#rate = rate
    this.#start = truth.now()
    this.#offset = offset
  }

  now(): number {
    return this.#start + this.#offset + (this.#truth.now() - this.#start) * this.#rate
  }

  asleep(): number {
    return this.#truth.asleep()
  }

  timer(time: number, run: () => void): Timer {
    // A hair later, so that rounding never makes a timer early.
    const truth = this.#start + (time - this.#start - this.#offset) / this.#rate + 1e-6
    return this.#truth.timer(truth, run)
  }

  defer(run: () => void): void {
    this.#truth.defer(run)
  }
}
