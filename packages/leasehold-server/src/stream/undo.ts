import type { Claimed, Granted, GrantRequest, LeaseStore } from 'leasehold/port'
import { type RequestMessage, readClaim } from 'leasehold/remote'
import type { Logger } from 'pino'
import type { Admission } from '../access/index.ts'

const WHY = 'its client had gone before it was answered'

/**
 * Takes back what was granted or claimed for a client that has gone meanwhile: nobody would know of
 * it, and a claim that waits would get its keys all the same. A request with an id is left alone,
 * because its client may come back and ask for its answer. Answers whether it is taken back.
 */
export function undo(
  { store, log }: { readonly store: LeaseStore; readonly log: Logger },
  admission: Admission,
  message: RequestMessage,
  answer: Granted | Claimed,
): boolean {
  const claim = answer.outcome === 'claimed' ? readClaim(message) : undefined
  const { request } = claim ?? (message[2] as GrantRequest)
  if (request !== undefined) return false
  const given = claim?.lease ?? (answer as Granted).lease
  const lease = admission.ownLease(given) ?? given
  const undone =
    claim === undefined
      ? store.revoke({ target: { lease }, by: 'leasehold-server', why: WHY })
      : store.release({ lease, token: answer.token, keys: claim.claims.map(({ key }) => key) })
  // The ttl of its lease ends it.
  undone.catch((error) => log.warn({ lease, err: error }, 'what nobody knows of stays'))
  return true
}
