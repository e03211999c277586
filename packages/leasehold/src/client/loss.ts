import {
  type End,
  type Key,
  LeaseholdError,
  type LeaseId,
  type LossReason,
  show,
  type Token,
} from '../port/index.ts'
import type { LossNews } from './emitter.ts'

/** Why something is held no more, kept as a plain value: most losses are never made an error. */
export interface Loss {
  readonly reason: LossReason
  /** What happened, to end the sentence "… is held no more: ". */
  readonly detail: string
  readonly by?: string | undefined
  readonly why?: string | undefined
  readonly cause?: unknown
}

/** The loss that an end means which the store told of. */
export function lossBy(end: End | undefined, what: 'its lease' | 'it'): Loss {
  if (end === undefined) return { reason: 'expired', detail: `the store knows ${what} no more` }
  const { by, why } = end
  // Whoever still held did not release it, so somebody else did, which is a revocation to them.
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

/** What to tell of a lost lease and what was under it. */
export function lossNews(
  lease: LeaseId,
  entries: readonly { readonly keys: readonly Key[]; readonly claimToken: Token }[],
  loss: Loss,
): LossNews {
  const claims = entries.flatMap(({ keys, claimToken: token }) =>
    keys.map((key) => ({ key, token })),
  )
  const keys = claims.length > 0 ? claims.map(({ key }) => key) : [lease]
  const token = claims.length === 1 ? claims[0]!.token : 0
  return { lease, claims, error: lostError(keys, token, loss) }
}

export function closedError(): LeaseholdError {
  return new LeaseholdError('closed', 'this client was closed: open another one')
}
