import type { Log, Position } from '../../log/index.ts'
import {
  backoff,
  type Clock,
  isLeaseholdError,
  LeaseholdError,
  type Random,
} from '../../port/index.ts'
import { type Batch, failAll } from '../calls/index.ts'
import { isFinal } from '../faults.ts'

/** The wait after the first failed append, and the longest one. */
const RETRY_MS = 20
const RETRY_MAX_MS = 1000

/** How an append ended. Both fields are missing if the outcome is unknown or no longer matters. */
export interface Appended {
  readonly position?: Position
  /** The entry is not in the log, or its outcome cannot be known. */
  readonly refusal?: LeaseholdError
}

/**
 * Appends one entry at a time. If the outcome of an append is unknown, it repeats the append with the
 * same bytes until the log acknowledges it or the entry is seen in the log. A second copy does nothing.
 */
export class Appender {
  readonly #log: Log
  readonly #clock: Clock
  readonly #random: Random
  #closed = false
  isBusy = false
  /** Why the latest attempt failed; `undefined` if it succeeded. */
  lastError: unknown

  constructor(log: Log, clock: Clock, random: Random) {
    this.#log = log
    this.#clock = clock
    this.#random = random
  }

  async append(batch: Batch): Promise<Appended> {
    this.isBusy = true
    try {
      return await this.#append(batch)
    } finally {
      this.isBusy = false
    }
  }

  close(): void {
    this.#closed = true
  }

  async #append(batch: Batch): Promise<Appended> {
    let mayBeAppended = false
    for (let failures = 0; !this.#closed && !batch.isOver; failures++) {
      try {
        const position = await this.#log.append(batch.bytes)
        this.lastError = undefined
        return { position }
      } catch (error) {
        this.lastError = error
        if (isFinal(error)) return { refusal: refuse(batch, error, mayBeAppended) }
        mayBeAppended ||= !isLeaseholdError(error, 'timeout')
        await this.#pause(backoff(failures, this.#random, RETRY_MS, RETRY_MAX_MS))
      }
    }
    return {}
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#clock.timer(this.#clock.now() + ms, resolve, true)
    })
  }
}

function refuse(batch: Batch, error: LeaseholdError, mayBeAppended: boolean): LeaseholdError {
  batch.isOver = true
  const unknown = new LeaseholdError(
    'unknown-outcome',
    `${error.message}. An earlier attempt may have been carried out, or may still be`,
  )
  const failure = mayBeAppended ? unknown : error
  failAll(batch, failure)
  return failure
}
