import { isLeaseholdError, LeaseholdError } from '../../port/index.ts'
import { CODE, isFault } from './wire/index.ts'

/** A server breaks the connection at a request above `jute.maxbuffer`, which is just below 1 MiB. */
export const REQUEST_BYTES = 1_000_000

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

/** With `hasLeft`, the request is on its way, and nobody is here any more to hear what became of it. */
export function closed(hasLeft = false): LeaseholdError {
  if (!hasLeft) return new LeaseholdError('closed', 'the store is closed: open it again')
  return new LeaseholdError(
    'unknown-outcome',
    'the store was closed before ZooKeeper answered: read how things stand, or ask again with the same request id',
  )
}

/** The rest of a call that has changed something: it cannot be called refused any more. */
export async function afterChange<A>(rest: Promise<A>): Promise<A> {
  try {
    return await rest
  } catch (error) {
    throw isLeaseholdError(error, 'closed') ? closed(true) : error
  }
}

export function tooLarge(bytes: number): LeaseholdError {
  return new LeaseholdError(
    'limit-exceeded',
    `the call takes a request of ${bytes} bytes, and ZooKeeper accepts ${REQUEST_BYTES}: name fewer keys, or make values smaller`,
  )
}

export function tooManyLeaders(zxid: number): LeaseholdError {
  return new LeaseholdError(
    'unsupported',
    `the ensemble's transaction number ${zxid} is above 2^53, after some two million leaders: start a new ensemble`,
  )
}
