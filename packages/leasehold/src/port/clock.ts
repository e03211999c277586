/**
 * Time, as an argument. Everything in Leasehold that needs to know the time, or to wait for it, is
 * handed a `Clock`; only `system-clock.ts` reads the machine's.
 */
export interface Clock {
  /**
   * Milliseconds on a monotonic clock: it is never set and never steps back, whatever happens to
   * the wall clock. Its origin lies near the Unix epoch, so that a time can be shown to a person;
   * two machines' values must never be compared with each other.
   *
   * Does not count the time that the machine spent suspended: see `asleep`.
   */
  now(): number

  /**
   * How many milliseconds the machine has been suspended in all, as far as this clock can tell.
   * A holder adds it to `now`: its lease went on running out while it slept. A runner does not:
   * nobody could renew while it slept.
   */
  asleep(): number

  /**
   * Calls `run` once, when `now()` has reached `time` or soon after, never before. A timer does not
   * keep the process running unless `keepAlive` is true.
   */
  timer(time: number, run: () => void, keepAlive?: boolean): Timer

  /** Calls `run` soon, but after the input that has already arrived has been handled. */
  defer(run: () => void): void
}

export interface Timer {
  /** The call will not happen any more. Cancelling twice, or too late, does nothing. */
  cancel(): void
}
