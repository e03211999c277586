/**
 * Time as an argument. Everything in Leasehold that reads the time, or waits, is given a `Clock`.
 * Only `system-clock.ts` reads the machine's clock.
 */
export interface Clock {
  /**
   * Milliseconds on a monotonic clock: nobody can set it and it never goes back, whatever happens
   * to the wall clock. Its origin is near the Unix epoch, so that a time can be shown to a person.
   * Never compare the values of two machines.
   *
   * Does not count the time during which the machine was suspended: see `asleep`.
   */
  now(): number

  /**
   * How many milliseconds the machine has been suspended in total, as far as this clock can tell.
   * A holder adds it to `now`, because the store's clock went on while the holder's machine slept.
   * A store does not: no holder could renew while the store's machine slept.
   */
  asleep(): number

  /**
   * What the time of day is, in milliseconds since the Unix epoch. Somebody may set it, back too:
   * use it only for times that people name, such as 3 o'clock. The same as `now` if not given.
   */
  timeOfDay?(): number

  /**
   * Calls `run` once, when `now()` has reached `time` or soon after, never before. Only with
   * `keepAlive` does the timer keep the process running.
   */
  timer(time: number, run: () => void, keepAlive?: boolean): Timer

  /** Calls `run` soon, but after the input that has already arrived was handled. */
  defer(run: () => void): void
}

export interface Timer {
  /** Prevents the call. Cancelling twice, or too late, does nothing. */
  cancel(): void
}
