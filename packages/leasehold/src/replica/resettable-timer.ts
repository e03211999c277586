import type { Clock, Timer } from '../port/index.ts'

/** One timer that can be set to another time. */
export class ResettableTimer {
  readonly #clock: Clock
  readonly #expired: () => void
  #timer: Timer | undefined
  #time = Infinity

  constructor(clock: Clock, expired: () => void) {
    this.#clock = clock
    this.#expired = expired
  }

  set(time: number): void {
    if (this.#timer && this.#time === time) return
    this.#timer?.cancel()
    this.#time = time
    this.#timer = this.#clock.timer(time, () => {
      this.#timer = undefined
      this.#expired()
    })
  }

  cancel(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }
}
