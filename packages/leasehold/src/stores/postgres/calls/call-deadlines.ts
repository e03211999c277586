import { type Clock, LeaseholdError, type Timer } from '../../../port/index.ts'

/** A call that must be settled by its deadline. */
export interface Due {
  readonly deadline: number
  readonly reject: (error: LeaseholdError) => void
}

/**
 * Calls in the order of their deadlines. Each is rejected and removed when its time is over. Until
 * `stop`, one timer for all of them keeps the process running.
 */
export class CallDeadlines {
  readonly #clock: Clock
  readonly #late: () => LeaseholdError
  #calls: Due[] = []
  #timer: Timer | undefined

  constructor(clock: Clock, late: () => LeaseholdError) {
    this.#clock = clock
    this.#late = late
  }

  /** Watches these calls. There may be more of them by the time that the first is late. */
  start(calls: Due[]): void {
    if (this.#timer !== undefined || calls.length === 0) return
    this.#calls = calls
    this.#timer = this.#clock.timer(calls[0]!.deadline, () => this.expire(), true)
  }

  stop(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  /** Watches these calls from now on, instead of the earlier ones. */
  restart(calls: Due[]): void {
    this.stop()
    this.start(calls)
  }

  /** Removes the late calls that no timer has reported yet. */
  expire(): void {
    const calls = this.#calls
    const now = this.#clock.now()
    const early = calls.findIndex(({ deadline }) => deadline > now)
    const late = calls.splice(0, early === -1 ? calls.length : early)
    for (const { reject } of late) reject(this.#late())
    this.restart(calls)
  }
}

/** It was sent, and may have been carried out. */
export function unanswered(ms: number): LeaseholdError {
  const message = `the database did not answer within ${ms} ms: it may have been done`
  return new LeaseholdError('unknown-outcome', message)
}

/** Certainly not carried out, but reported as unknown, so that it is repeated: see faults. */
export function unsent(ms: number): LeaseholdError {
  const message = `the database was too slow for ${ms} ms to take this call: nothing was sent`
  return new LeaseholdError('unknown-outcome', message)
}
