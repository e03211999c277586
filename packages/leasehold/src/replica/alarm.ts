import type { Clock, Timer } from '../port/index.ts'

/** One timer that is set again and again. */
export class Alarm {
  readonly #clock: Clock
  readonly #ring: () => void
  #timer: Timer | undefined
  #time = Infinity

  constructor(clock: Clock, ring: () => void) {
    this.#clock = clock
    this.#ring = ring
  }

  set(time: number): void {
    if (this.#timer && this.#time === time) return
    this.#timer?.cancel()
    this.#time = time
    this.#timer = this.#clock.timer(time, () => {
      this.#timer = undefined
      this.#ring()
    })
  }

  cancel(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }
}
