import type { Log, Position } from '../log/index.ts'
import { type Clock, isLeaseholdError, LeaseholdError } from '../port/index.ts'
import { isFinal } from './faults.ts'
import { type Batch, failAll } from './own-entries.ts'

/** After an append that failed, the next attempt waits for so long, and each time twice as long. */
const RETRY_MS = 20
const RETRY_MAX_MS = 1000

/** How an append ended. Neither is there if it is not known, or if it does not matter any more. */
export interface Appended {
  readonly position?: Position
  /** It is not in the log, or nobody can know. */
  readonly refusal?: LeaseholdError
}

/**
 * Appends one entry at a time. An append whose outcome is unknown is repeated with the same bytes,
 * until it is acknowledged or was seen in the log: a second copy does nothing.
 */
export class Appender {
  readonly #log: Log
  readonly #clock: Clock
  #closed = false
  isBusy = false
  /** Why the latest attempt failed; `undefined` if it did not. */
  trouble: unknown

  constructor(log: Log, clock: Clock) {
    this.#log = log
    this.#clock = clock
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
    let mayBeThere = false
    for (let wait = RETRY_MS; !this.#closed && !batch.isOver; ) {
      try {
        const position = await this.#log.append(batch.bytes)
        this.trouble = undefined
        return { position }
      } catch (error) {
        this.trouble = error
        if (isFinal(error)) return { refusal: refuse(batch, error, mayBeThere) }
        mayBeThere ||= !isLeaseholdError(error, 'timeout')
        await this.#pause(wait)
        wait = Math.min(2 * wait, RETRY_MAX_MS)
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

function refuse(batch: Batch, error: LeaseholdError, mayBeThere: boolean): LeaseholdError {
  batch.isOver = true
  const unknown = new LeaseholdError(
    'unknown-outcome',
    `${error.message}; an earlier attempt may have been carried out, or may be yet`,
  )
  const told = mayBeThere ? unknown : error
  failAll(batch, told)
  return told
}
