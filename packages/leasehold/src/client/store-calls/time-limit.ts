import {
  checkNames,
  type Duration,
  formatDuration,
  invalid,
  knownNames,
  LeaseholdError,
  positive,
  show,
} from '../../port/index.ts'

/** How long the caller of one call waits for its answer, and who chose that. */
export interface TimeLimit {
  readonly ms: number
  readonly chosenBy: 'call' | 'client' | 'default'
}

/** The options of a call that has no other options. */
export interface CallOptions {
  /** How long to wait for the store's answer. The client's `timeout` if not given. */
  readonly timeout?: Duration | undefined
}

const CALL_OPTIONS = knownNames<CallOptions>({ timeout: true })

/** The `timeout` in the options of a call that has no other options. */
export function timeoutIn(where: string, options: CallOptions | undefined): Duration | undefined {
  if (options === undefined) return undefined
  if (typeof options !== 'object' || options === null) {
    throw invalid(`options is ${show(options)}: it must be an object`)
  }
  checkNames(where, options, CALL_OPTIONS)
  return options.timeout
}

export const DEFAULT_TIMEOUT_MS = 5000

const CHOICES = {
  call: 'the timeout of this call',
  client: "the client's timeout",
  default: "the default timeout; set 'timeout' to change it",
} as const

/** The limit that a call has: its own, or the one of its client. */
export function limitOf(timeout: Duration | undefined, otherwise: TimeLimit): TimeLimit {
  if (timeout === undefined) return otherwise
  return { ms: positive(timeout, 'timeout'), chosenBy: 'call' }
}

/**
 * The error for a call without an answer. A read has changed nothing, so it fails with `timeout`.
 * Anything else may have been carried out; `then` says what the client does about it.
 */
export function noAnswer(
  what: string,
  limit: TimeLimit,
  effect: { readonly isRead: true } | { readonly isRead: false; readonly then: string },
  cause: unknown,
): LeaseholdError {
  const reason = cause instanceof Error ? ` The last error: ${cause.message}.` : ''
  const waited = `the store did not answer ${what} within ${formatDuration(limit.ms)} (${CHOICES[limit.chosenBy]}).`
  if (effect.isRead) {
    return new LeaseholdError('timeout', `${waited} It was a read and changed nothing.${reason}`, {
      cause,
    })
  }
  return new LeaseholdError(
    'unknown-outcome',
    `${waited} It may have been carried out: ${effect.then}.${reason}`,
    { cause },
  )
}
