import type { Claimed, Granted, GrantRequest, LeaseStore } from 'leasehold/port'
import { type RequestMessage, readClaim } from 'leasehold/remote'
import type { Logger } from 'pino'
import type { Admission } from '../access/index.ts'

const WHY = 'its client disconnected before the answer'

/**
 * Undoes a grant or claim for a client that has disconnected meanwhile: nobody knows of it, and a
 * waiting claim would still get its keys. A request with an id stays, because its client may
 * reconnect and ask for the answer. A claim that replaced another stays, too: to release it would
 * remove a value that was there before. Returns whether it is undone.
 */
export function undo(
  { store, log }: { readonly store: LeaseStore; readonly log: Logger },
  admission: Admission,
  message: RequestMessage,
  answer: Granted | Claimed,
): boolean {
  const claim = answer.outcome === 'claimed' ? readClaim(message) : undefined
  const { request } = claim ?? (message[2] as GrantRequest)
  if (request !== undefined || claim?.replaces !== undefined) return false
  const given = claim?.lease ?? (answer as Granted).lease
  const lease = admission.ownLease(given) ?? given
  const undone =
    claim === undefined
      ? store.revoke({ target: { lease }, by: 'leasehold-server', why: WHY })
      : store.release({ lease, token: answer.token, keys: claim.claims.map(({ key }) => key) })
  // The ttl of the lease ends it.
  undone.catch((error) => log.warn({ lease, err: error }, 'cannot undo an unanswered request'))
  return true
}
