import {
  type Claimed,
  type Granted,
  isLeaseholdError,
  LeaseholdError,
  type LeaseId,
  type LeaseStore,
  type Query,
} from 'leasehold/port'
import {
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

/**
 * Performs one request on the store and returns the encoded answer; `undefined` for an unknown
 * operation. This is the one place where a message becomes a call. The connection handles the
 * operations of the stream itself: watches and ties.
 */
export function carryOut(
  store: LeaseStore,
  message: RequestMessage,
  done: Done,
): Promise<string> | undefined {
  const [id, operation, request] = message
  switch (operation) {
    case 'claim':
      return store.claim(readClaim(message)).then((answer) => {
        if (answer.outcome === 'claimed') done(message, answer)
        return writeClaimed(id, answer)
      })
    case 'release':
      return store.release(readRelease(message)).then((answer) => writeChanged(id, answer))
    case 'renew':
      return store
        .renew(message[2] as readonly LeaseId[])
        .then((answer) => writeRenewed(id, answer))
    case 'grant':
      return store.grant(readGrant(message)).then((answer) => {
        if (answer.outcome === 'granted') done(message, answer)
        return writeAnswer(id, answer)
      })
    case 'revoke':
      return store.revoke(request as never).then((answer) => writeAnswer(id, answer))
    case 'update':
      return store.update(request as never).then((answer) => writeChanged(id, answer))
    case 'read':
      return store.read(request as Query).then((answer) => writeAnswer(id, answer))
    default:
      return undefined
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
