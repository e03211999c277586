import {
  type Complaint,
  checkKey,
  checkToken,
  DEFAULT_LIMITS,
  LeaseholdError,
  show,
  type Token,
} from '../port/index.ts'

/**
 * A fence protects a resource: it refuses the operations of past holders.
 *
 * A holder can be paused between checking its lock and writing, for any length of time. No lease
 * system can close that gap; only the resource can, by the token. So every operation on the resource
 * carries the token of its lock, and the resource asks its fence before it acts.
 *
 * **Promised by every fence.** The tokens that it admits for a resource never decrease, however many
 * callers ask at once, and across restarts of the fence's engine. Tokens are compared as numbers. A
 * token equal to the highest seen is the same holder again and is admitted, so the newest token is
 * never refused. An admitted token is stored before the answer, as durably as the fence's engine
 * stores data.
 *
 * **Not promised.** Admission is about the moment of admission. If the operation is a second step, a
 * newer holder may be admitted, and act, in between; then the older operation comes last. Only an
 * operation in one step with the check is safe: `within` a transaction of PostgreSQL, `set` of
 * Redis, and, as far as a file system allows, `writeFile`. A fence cannot recognise a token that was
 * never issued, and knows nothing of time: a holder whose lease has expired is admitted until a
 * newer token is admitted.
 */
export interface Fence {
  /**
   * Decides whether an operation on this resource with this token may proceed, and stores the token if
   * it is the highest so far. Asking twice is harmless.
   *
   * Refused: `stale-token`, with `token` and `highest`; `invalid-argument`. If the fence cannot be
   * asked, the outcome is unknown: the operation must not proceed, and the caller may ask again.
   */
  admit(resource: string, token: Token): Promise<void>
}

/** Throws if an argument is invalid. A token that is a string is refused, not converted. */
export function checkAdmission(resource: string, token: Token): void {
  const complaint: Complaint = checkKey(resource, DEFAULT_LIMITS, 'resource') ?? checkToken(token)
  if (complaint) throw LeaseholdError.from(complaint)
}

/** Throws if the token is lower than the highest that the resource has seen. */
export function refuseStale(resource: string, token: Token, highest: Token): void {
  if (token >= highest) return
  throw new LeaseholdError(
    'stale-token',
    `token ${token} for ${show(resource)} is stale: it has seen token ${highest}, so another holder has used it since. Stop this work; take the lock again and act with its new token`,
    { token, highest },
  )
}

/** The error for a call to the fence's engine that was not answered as expected. */
export function unanswered(engine: string, resource: string, cause: unknown): LeaseholdError {
  const what = cause instanceof Error ? cause.message : String(cause)
  return new LeaseholdError(
    'unknown-outcome',
    `the fence of ${show(resource)} could not be asked: ${engine}: ${what}. Do not act; ask again with the same token`,
    { cause },
  )
}
