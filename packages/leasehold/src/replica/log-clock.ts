import type { Time } from '../port/index.ts'

/**
 * Reckons the time of the log. It went on at the rate of this replica's own clock since the latest
 * time that was seen in an entry; the time between writing an entry and applying it is not lost,
 * because only an entry that is ahead of the reckoning moves it. No clock of two machines is compared:
 * the time of the log begins with the clock of whoever founded it, and is there to be shown.
 */
export class LogClock {
  #ahead = -Infinity

  /** An entry with this time was applied at `now`. */
  seen(time: Time, now: number): void {
    this.#ahead = Math.max(this.#ahead, time - now)
  }

  at(now: number): Time {
    return this.#ahead === -Infinity ? now : now + this.#ahead
  }
}
