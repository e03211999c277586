import { isLeaseholdError, LeaseholdError } from '../../port/index.ts'
import { CODE, isFault } from './wire/index.ts'

/** No answer came in time; the request may have been carried out, or may be yet. */
export function unanswered(trouble: string, patience: number): LeaseholdError {
  return new LeaseholdError(
    'unknown-outcome',
    `ZooKeeper did not answer within ${Math.round(patience)} ms (${trouble}): ask again with the same request id, or read`,
  )
}

/** What a failure of the engine is to a caller of the store. */
export function storeFault(error: unknown): LeaseholdError {
  if (isLeaseholdError(error)) return error
  if (isFault(error, CODE.noAuth, CODE.authFailed)) {
    return new LeaseholdError(
      'forbidden',
      'ZooKeeper refuses access to the nodes of this store: give auth as they were made with',
      { cause: error },
    )
  }
  const text = error instanceof Error ? error.message : String(error)
  return new LeaseholdError(
    'unknown-outcome',
    `ZooKeeper could not carry this out (${text}): read how things stand, or ask again`,
    { cause: error },
  )
}

/** Others changed the same things again and again, so that a transaction never found them as read. */
export function contended(tries: number): LeaseholdError {
  return new LeaseholdError(
    'unknown-outcome',
    `others changed the same keys at the same time, ${tries} times in a row: ask again`,
  )
}
