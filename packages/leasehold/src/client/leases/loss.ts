import {
  type End,
  type Key,
  LeaseholdError,
  type LeaseId,
  type LossReason,
  show,
  type Token,
} from '../../port/index.ts'
import type { LossEvent } from '../events/index.ts'

/** Why something is no longer held, as a plain value: most losses never become an error. */
export interface Loss {
  readonly reason: LossReason
  /** What happened, which completes the sentence "… is held no more: ". */
  readonly detail: string
  readonly by?: string | undefined
  readonly why?: string | undefined
  readonly cause?: unknown
}

/** The loss that follows from an end that the store reported. */
export function lossBy(end: End | undefined, what: 'its lease' | 'it'): Loss {
  if (end === undefined) return { reason: 'expired', detail: `the store knows ${what} no more` }
  const { by, why } = end
  // The holder still held it and did not release it. So somebody else did: to it, a revocation.
  const reason = end.reason === 'released' ? 'revoked' : end.reason
  const who = by ? ` by ${show(by)}` : ''
  const because = why ? `, because ${show(why)}` : ''
  return { reason, by, why, detail: `${what} was ${reason}${who}${because}` }
}

export function lostError(keys: readonly Key[], token: Token, loss: Loss): LeaseholdError {
  const claim = token > 0 ? ` (token ${token})` : ''
  return new LeaseholdError(
    'lost',
    `${keys.map(show).join(', ')}${claim} is held no more: ${loss.detail}`,
    { reason: loss.reason, by: loss.by, why: loss.why, cause: loss.cause },
  )
}

/** The event for a lost lease and the claims under it. */
export function lossEvent(
  lease: LeaseId,
  entries: readonly { readonly keys: readonly Key[]; readonly claimToken: Token }[],
  loss: Loss,
): LossEvent {
  const claims = entries.flatMap(({ keys, claimToken: token }) =>
    keys.map((key) => ({ key, token })),
  )
  const keys = claims.map(({ key }) => key)
  const token = claims.length === 1 ? claims[0]!.token : 0
  return { lease, claims, error: lostError(keys, token, loss) }
}
