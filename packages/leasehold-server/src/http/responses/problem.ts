import {
  type Ahead,
  type Busy,
  ERRORS,
  type ErrorCode,
  isLeaseholdError,
  LeaseholdError,
} from 'leasehold/port'

/** The `code` of a problem: an error code of the library, or one of HTTP alone. */
export type ProblemCode = ErrorCode | 'busy' | 'not-found' | 'key-reused'

/** The HTTP status of each code. A wait in a queue that ended (`NotAvailable`) has that of `busy`. */
export const STATUS: Readonly<Record<ProblemCode, number>> = {
  'invalid-argument': 400,
  unauthenticated: 401,
  forbidden: 403,
  'not-found': 404,
  'lease-not-found': 404,
  'claim-not-found': 404,
  busy: 409,
  'lease-ended': 410,
  lost: 410,
  lapsed: 409,
  'stale-token': 412,
  'key-reused': 422,
  'limit-exceeded': 429,
  aborted: 499,
  unsupported: 501,
  timeout: 504,
  closed: 503,
  'unknown-outcome': 503,
  'storage-failed': 503,
  'storage-locked': 503,
  'storage-damaged': 500,
  'storage-full': 507,
}

/** All statuses that a code is answered with. */
export function statusesOf(code: ProblemCode): readonly number[] {
  return code === 'timeout' ? [STATUS.busy, STATUS.timeout] : [STATUS[code]]
}

/** A problem (RFC 9457) with the fields of our errors. */
export interface Problem {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly detail: string
  readonly code: ProblemCode
  /** `refused`: nothing was changed. `unknown`: the change may have been made. */
  readonly outcome: 'refused' | 'unknown'
  readonly reason?: string | undefined
  readonly by?: string | undefined
  readonly why?: string | undefined
  /** The current holder, its fencing token, and when it expires without a renewal. */
  readonly holder?: string | undefined
  readonly token?: number | undefined
  readonly until?: number | undefined
  readonly ahead?: readonly Ahead[] | undefined
}

/** The requested keys are not available: another holder has them, or the wait ended. */
export class NotAvailable extends Error {
  readonly code: 'busy' | 'timeout'
  readonly ahead: readonly Ahead[]

  constructor(code: 'busy' | 'timeout', message: string, ahead: readonly Ahead[] = []) {
    super(message)
    this.code = code
    this.ahead = ahead
  }

  static from({ ahead }: Busy): NotAvailable {
    const first = ahead[0]
    const held = first && `${first.first.holder} holds ${first.key} with token ${first.first.token}`
    return new NotAvailable('busy', held ?? 'it is not free', ahead)
  }

  /** The answer for a failed wait: if it ended, others hold what was asked for. */
  static afterWait(error: unknown): unknown {
    if (!isLeaseholdError(error, 'timeout')) return error
    return new NotAvailable('timeout', error.message)
  }
}

/** An Idempotency-Key was used for a different request before. */
export class KeyReused extends Error {
  readonly code = 'key-reused'
}

/** The codes of HTTP alone. */
const OWN = {
  busy: { outcome: 'refused', meaning: 'Another holder has it, or is ahead in the queue.' },
  'not-found': { outcome: 'refused', meaning: 'The path does not exist.' },
  'key-reused': {
    outcome: 'refused',
    meaning: 'The Idempotency-Key was used for a different request.',
  },
} as const

const PROBLEMS = { ...ERRORS, ...OWN }

export function meaningOf(code: ProblemCode): string {
  return PROBLEMS[code].meaning
}

export function problemOf(thrown: unknown): Problem {
  if (thrown instanceof NotAvailable) {
    const { code, message: detail, ahead } = thrown
    const first = ahead[0]?.first
    const holding = first && { holder: first.holder, token: first.token, until: first.until, ahead }
    return { ...head(code, STATUS.busy, detail), ...holding }
  }
  if (thrown instanceof KeyReused) return head(thrown.code, STATUS[thrown.code], thrown.message)
  const error = asLeaseholdError(thrown)
  const { code, message, reason, by, why } = error
  return { ...head(code, STATUS[code], message), reason, by, why }
}

/** A refusal of the framework, with its status. */
export function refusedByFramework(status: number, detail: string): Problem {
  const code = status === 413 || status === 431 ? 'limit-exceeded' : 'invalid-argument'
  return head(code, status, detail)
}

/** Unknown path or method. */
export function notFound(method: string, path: string): Problem {
  return head('not-found', STATUS['not-found'], `${method} ${path} does not exist; see /docs`)
}

function head(code: ProblemCode, status: number, detail: string): Problem {
  const { outcome } = PROBLEMS[code]
  return { type: `/docs#${code}`, title: meaningOf(code), status, detail, code, outcome }
}

/** After a server bug, the outcome is unknown, and the message is not shown to the caller. */
function asLeaseholdError(thrown: unknown): LeaseholdError {
  if (isLeaseholdError(thrown)) return thrown
  return new LeaseholdError(
    'unknown-outcome',
    'internal error: the change may have been made or not',
  )
}
