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

/** Called with what a request has brought about, before it is answered. */
export type Done = (message: RequestMessage, answer: Granted | Claimed) => void

/**
 * Carries out one request on the store, and gives the answer as it is to be sent. The one place
 * where a message becomes a call: who may do what is to be decided here and nowhere else. What
 * concerns the stream itself, its watches and ties, is the connection's.
 *
 * `undefined` where there is no such operation.
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

/** What a store threw, as an answer. A fault of ours says nothing of the outcome. */
export function refusal(id: number, thrown: unknown): string {
  return writeError(id, asLeaseholdError(thrown))
}

export function asLeaseholdError(thrown: unknown): LeaseholdError {
  if (isLeaseholdError(thrown)) return thrown
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  return new LeaseholdError('unknown-outcome', `the server failed: ${message}`, { cause: thrown })
}
