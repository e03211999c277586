import type { Time } from '../../port/index.ts'

/**
 * Estimates the time of the log: the latest time seen in an entry, plus what has passed since on this
 * replica's own clock. Only an entry that is ahead of the estimate changes it, so the delay between
 * writing and applying an entry is not lost. Clocks of two machines are never compared: the time of
 * the log starts with the clock of the process that created it, and is only for display.
 */
export class LogClock {
  #offset = -Infinity

  /** An entry with this time was applied at `now`. */
  observe(time: Time, now: number): void {
    this.#offset = Math.max(this.#offset, time - now)
  }

  at(now: number): Time {
    return this.#offset === -Infinity ? now : now + this.#offset
  }
}
