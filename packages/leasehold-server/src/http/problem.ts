import {
  type Ahead,
  type Busy,
  ERRORS,
  type ErrorCode,
  isLeaseholdError,
  LeaseholdError,
} from 'leasehold/port'

/** What a problem's `code` says: a code of the library, that somebody else holds it, or no path. */
export type ProblemCode = ErrorCode | 'busy' | 'not-found' | 'key-reused'

/** The one table of which code is told with which status. */
export const STATUS: Readonly<Record<ProblemCode, number>> = {
  'invalid-argument': 400,
  unauthenticated: 401,
  forbidden: 403,
  'not-found': 404,
  'lease-not-found': 404,
  'claim-not-found': 404,
  busy: 409,
  timeout: 409,
  'lease-ended': 410,
  lost: 410,
  lapsed: 409,
  'stale-token': 412,
  'key-reused': 422,
  'limit-exceeded': 429,
  aborted: 499,
  unsupported: 501,
  closed: 503,
  'unknown-outcome': 503,
  'storage-failed': 503,
  'storage-locked': 503,
  'storage-damaged': 500,
  'storage-full': 507,
}

/** RFC 9457, with what our errors say. */
export interface Problem {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly detail: string
  readonly code: ProblemCode
  /** `refused`: nothing was changed. `unknown`: it may have been done. */
  readonly outcome: 'refused' | 'unknown'
  readonly reason?: string | undefined
  readonly by?: string | undefined
  readonly why?: string | undefined
  /** Where somebody else holds it: who, with which token, and until when unless it is renewed. */
  readonly holder?: string | undefined
  readonly token?: number | undefined
  readonly until?: number | undefined
  readonly ahead?: readonly Ahead[] | undefined
}

/** What was asked for is not to be had now: somebody holds it, or it did not come in time. */
export class NotHad extends Error {
  readonly code: 'busy' | 'timeout'
  readonly ahead: readonly Ahead[]

  constructor(code: 'busy' | 'timeout', message: string, ahead: readonly Ahead[] = []) {
    super(message)
    this.code = code
    this.ahead = ahead
  }

  static from({ ahead }: Busy): NotHad {
    const first = ahead[0]
    const said = first && `${first.first.holder} holds ${first.key} with token ${first.first.token}`
    return new NotHad('busy', said ?? 'it is not free', ahead)
  }
}

/** An Idempotency-Key came with another request than the first one that it named. */
export class KeyReused extends Error {
  readonly code = 'key-reused'
}

/** What only HTTP tells of. */
const OWN = {
  busy: { outcome: 'refused', meaning: 'Somebody else holds it, or is before you in line.' },
  'not-found': { outcome: 'refused', meaning: 'There is nothing here.' },
  'key-reused': {
    outcome: 'refused',
    meaning: 'The Idempotency-Key names another request.',
  },
} as const

const PROBLEMS = { ...ERRORS, ...OWN }

export function meaningOf(code: ProblemCode): string {
  return PROBLEMS[code].meaning
}

export function problemOf(thrown: unknown): Problem {
  if (thrown instanceof NotHad) {
    const { code, message: detail, ahead } = thrown
    const first = ahead[0]?.first
    const holding = first && { holder: first.holder, token: first.token, until: first.until, ahead }
    return { ...head(code, STATUS[code], detail), ...holding }
  }
  if (thrown instanceof KeyReused) return head(thrown.code, STATUS[thrown.code], thrown.message)
  const error = asLeaseholdError(thrown)
  const { code, message, reason, by, why } = error
  return { ...head(code, STATUS[code], message), reason, by, why }
}

/** What the framework refused before anybody was asked: its status stands. */
export function refusedByFramework(status: number, detail: string): Problem {
  const code = status === 413 || status === 431 ? 'limit-exceeded' : 'invalid-argument'
  return head(code, status, detail)
}

/** There is no such path, or not with this method. */
export function nothingAt(method: string, path: string): Problem {
  return head('not-found', STATUS['not-found'], `there is no ${method} ${path}: see /docs`)
}

function head(code: ProblemCode, status: number, detail: string): Problem {
  const { outcome } = PROBLEMS[code]
  return { type: `/docs#${code}`, title: meaningOf(code), status, detail, code, outcome }
}

/** A fault of ours says nothing of the outcome, and its text is not for others to read. */
function asLeaseholdError(thrown: unknown): LeaseholdError {
  if (isLeaseholdError(thrown)) return thrown
  return new LeaseholdError('unknown-outcome', 'the server failed: it may have been done, or not')
}
