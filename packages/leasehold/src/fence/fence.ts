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
 * A fence stands before a protected resource and turns away whoever held the lease in the past.
 *
 * A holder can be paused between its look at the lock and its write, for any length of time, and no
 * lease system can close that gap: only the resource can, by the token. So every operation on the
 * resource carries the token of its lock, and the resource asks its fence before it acts.
 *
 * **Promised, by every fence.** The tokens that it admits for a resource never go down, whoever asks
 * and however many ask at once, across restarts of whatever the fence is kept in. Tokens are compared
 * as numbers. A token that is as high as the highest seen is the same holder again and is admitted;
 * so the newest token is never refused. What was admitted is remembered before it is answered, as
 * durably as the fence's own engine keeps things.
 *
 * **Not promised.** Admission is about the moment of admission. Where the operation follows it as a
 * second step, a newer holder may be admitted, and act, in between; then the older operation comes
 * last. Only an operation that is one step with the check is safe from that: `within` a transaction
 * of PostgreSQL, `set` of Redis, and as far as a file system goes `writeFile`. A fence also cannot
 * tell a token that nobody was ever given, and knows nothing of time: a holder whose lease has
 * expired is admitted until somebody with a newer token has been.
 */
export interface Fence {
  /**
   * Decides whether an operation on this resource with this token may go on, and remembers the
   * token if it is the highest so far. Asking twice is harmless.
   *
   * Refused: `stale-token`, with `token` and `highest`; `invalid-argument`. Where the fence could not
   * be asked the outcome is unknown: the operation must not go on, and may be asked about again.
   */
  admit(resource: string, token: Token): Promise<void>
}

/** Throws what is wrong with the arguments. A token that came as text is refused, not converted. */
export function checkAdmission(resource: string, token: Token): void {
  const complaint: Complaint = checkKey(resource, DEFAULT_LIMITS, 'resource') ?? checkToken(token)
  if (complaint) throw LeaseholdError.from(complaint)
}

/** Throws if the token is lower than the highest that the resource has seen. */
export function refuseStale(resource: string, token: Token, highest: Token): void {
  if (token >= highest) return
  throw new LeaseholdError(
    'stale-token',
    `token ${token} for ${show(resource)} is stale: it has seen token ${highest}, so somebody else has held it since. Stop this work; take the lock again and act with its new token`,
    { token, highest },
  )
}

/** What became of a call to the engine that a fence is kept in and that did not answer as it should. */
export function unanswered(engine: string, resource: string, cause: unknown): LeaseholdError {
  const what = cause instanceof Error ? cause.message : String(cause)
  return new LeaseholdError(
    'unknown-outcome',
    `the fence of ${show(resource)} could not be asked, because ${engine} said: ${what}. Do not act; ask again with the same token`,
    { cause },
  )
}
