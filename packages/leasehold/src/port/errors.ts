/**
 * Every failure that Leasehold reports has a code from this table. Each code has one of two
 * outcomes; the third outcome, done, is an answer and not an error:
 *
 * - `refused`: the call changed nothing, and the reason is known.
 * - `unknown`: the call may have been carried out, or may still be. Repeat it with the same request
 *   id, or read; never treat it as refused.
 */
export const ERRORS = {
  'invalid-argument': { outcome: 'refused', meaning: 'An argument is invalid.' },
  'limit-exceeded': { outcome: 'refused', meaning: 'The call would exceed a limit of the store.' },
  unsupported: { outcome: 'refused', meaning: 'This store does not support the request.' },
  'lease-not-found': { outcome: 'refused', meaning: 'No such lease, or it ended long ago.' },
  'lease-ended': { outcome: 'refused', meaning: 'The lease has ended; `reason` says how.' },
  'claim-not-found': {
    outcome: 'refused',
    meaning: 'The lease has no claim with this token on this key: it was released or replaced.',
  },
  'stale-token': {
    outcome: 'refused',
    meaning: 'The resource has seen a higher token: another holder has used it since.',
  },
  'storage-full': { outcome: 'refused', meaning: 'No space is left to write; reads still work.' },
  'storage-failed': { outcome: 'unknown', meaning: 'Writing failed; the store keeps trying.' },
  'storage-locked': { outcome: 'refused', meaning: 'Another process owns this folder.' },
  'storage-damaged': { outcome: 'refused', meaning: 'The stored files are damaged.' },
  unauthenticated: { outcome: 'refused', meaning: 'The server does not know who is calling.' },
  forbidden: { outcome: 'refused', meaning: 'The caller has no right to do this.' },
  closed: { outcome: 'refused', meaning: 'The store or client was closed.' },
  timeout: { outcome: 'refused', meaning: 'The wait was longer than the caller allowed.' },
  aborted: { outcome: 'refused', meaning: "The caller's AbortSignal was aborted." },
  'unknown-outcome': { outcome: 'unknown', meaning: 'No answer arrived; it may have been done.' },
  lapsed: {
    outcome: 'refused',
    meaning: 'The lease was not renewed in time. Its grace period runs; it may still recover.',
  },
  lost: { outcome: 'refused', meaning: 'The hold was lost; `reason` says why.' },
} as const satisfies Record<string, { outcome: 'refused' | 'unknown'; meaning: string }>

export type ErrorCode = keyof typeof ERRORS

/** Why a lease, or a claim on a key, ended. */
export type EndReason = 'released' | 'expired' | 'revoked' | 'broken'

/** Why a holder lost its hold: the store reported an end, or the holder concluded it. */
export type LossReason = Exclude<EndReason, 'released'> | 'superseded' | 'unreachable' | 'closed'

/** How something ended: the reason and, for a forced end, who did it and why. */
export interface End {
  readonly reason: EndReason
  readonly by?: string | undefined
  readonly why?: string | undefined
}

/**
 * A refusal as a value, so that the kernel can refuse without throwing, and an answer can be stored
 * and given again.
 */
export interface Refusal {
  readonly code: ErrorCode
  readonly message: string
  readonly end?: End | undefined
}

export interface ErrorDetails {
  readonly reason?: LossReason | EndReason | undefined
  readonly by?: string | undefined
  readonly why?: string | undefined
  readonly token?: number | undefined
  readonly highest?: number | undefined
  readonly cause?: unknown
}

/**
 * Marks the errors of every copy of this package. A program may load two copies, for example if two
 * dependencies bring their own. A store of one copy then throws to a client of the other.
 */
const BRAND = Symbol.for('leasehold.error')

export class LeaseholdError extends Error {
  /** `instanceof` is also true for the errors of another copy of this package. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return value instanceof Error && (value as { readonly [BRAND]?: unknown })[BRAND] === true
  }

  override readonly name = 'LeaseholdError'
  readonly code: ErrorCode
  /** For `lease-ended` and `lost`: how it ended. */
  readonly reason: LossReason | EndReason | undefined
  /** For a forced end: who asked for it. */
  readonly by: string | undefined
  /** For a forced end: the reason given. */
  readonly why: string | undefined
  /** For `stale-token`: the token that was refused, and the highest that the resource has seen. */
  readonly token: number | undefined
  readonly highest: number | undefined

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.code = code
    this.reason = details.reason
    this.by = details.by
    this.why = details.why
    this.token = details.token
    this.highest = details.highest
  }

  get [BRAND](): true {
    return true
  }

  get outcome(): 'refused' | 'unknown' {
    return ERRORS[this.code].outcome
  }

  static from(refusal: Refusal): LeaseholdError {
    return new LeaseholdError(refusal.code, refusal.message, refusal.end)
  }
}

export function isLeaseholdError(error: unknown, code?: ErrorCode): error is LeaseholdError {
  return error instanceof LeaseholdError && (code === undefined || error.code === code)
}

/** For an invalid argument. The message gives its value, what is allowed, and the fix. */
export function invalid(message: string): LeaseholdError {
  return new LeaseholdError('invalid-argument', message)
}
