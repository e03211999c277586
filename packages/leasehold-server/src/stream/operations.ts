import {
  type Busy,
  type Changed,
  type Claimed,
  type Granted,
  isLeaseholdError,
  LeaseholdError,
  type LeaseId,
  type LeaseStore,
  type Query,
  type Renewed,
} from 'leasehold/port'
import {
  type Operation,
  type RequestMessage,
  readClaim,
  readGrant,
  readRelease,
  writeAnswer,
  writeChanged,
  writeClaimed,
  writeError,
  writeRenewed,
} from 'leasehold/remote'

/** Called with the result of a grant or claim, before it is answered. */
export type Done = (message: RequestMessage, answer: Granted | Claimed) => void

/** The answer of the store to one request. */
export type StoreAnswer = Awaited<
  ReturnType<LeaseStore[Exclude<Operation, 'watch' | 'unwatch' | 'tie'>]>
>

/**
 * Performs one request on the store; `undefined` for an unknown operation. This is the one place
 * where a message becomes a call. The connection handles the operations of the stream itself: watches
 * and ties.
 */
export function carryOut(
  store: LeaseStore,
  message: RequestMessage,
): Promise<StoreAnswer> | undefined {
  const [, operation, request] = message
  switch (operation) {
    case 'claim':
      return store.claim(readClaim(message))
    case 'release':
      return store.release(readRelease(message))
    case 'renew':
      return store.renew(request as readonly LeaseId[])
    case 'grant':
      return store.grant(readGrant(message))
    case 'revoke':
      return store.revoke(request as never)
    case 'update':
      return store.update(request as never)
    case 'read':
      return store.read(request as Query)
    default:
      return undefined
  }
}

/** Encodes the answer of the store to a request. `done` gets that of a grant or claim before. */
export function encodeAnswer(message: RequestMessage, answer: StoreAnswer, done: Done): string {
  const [id, operation] = message
  switch (operation) {
    case 'claim': {
      const claimed = answer as Claimed | Busy
      if (claimed.outcome === 'claimed') done(message, claimed)
      return writeClaimed(id, claimed)
    }
    case 'grant': {
      const granted = answer as Granted | Busy
      if (granted.outcome === 'granted') done(message, granted)
      return writeAnswer(id, granted)
    }
    case 'release':
    case 'update':
      return writeChanged(id, answer as Changed)
    case 'renew':
      return writeRenewed(id, answer as Renewed)
    default:
      return writeAnswer(id, answer)
  }
}

/** Encodes an error of the store as an answer. After a server bug, the outcome is unknown. */
export function refusal(id: number, thrown: unknown): string {
  return writeError(id, asLeaseholdError(thrown))
}

export function asLeaseholdError(thrown: unknown): LeaseholdError {
  if (isLeaseholdError(thrown)) return thrown
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  return new LeaseholdError('unknown-outcome', `the server failed: ${message}`, { cause: thrown })
}
