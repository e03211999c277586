import { type ErrorCode, LeaseholdError } from '../../port/index.ts'

/** Redis's errors for calls that it has not carried out, and will not. */
const REFUSED: readonly (readonly [RegExp, ErrorCode, string])[] = [
  [/^OOM\b/, 'storage-full', 'Redis has no memory left: raise maxmemory, or end some leases'],
  [/^MISCONF\b/, 'storage-full', 'Redis cannot write to its disk, and so refuses changes'],
  [/^NOAUTH\b/, 'unauthenticated', 'Redis wants a password: give it to the client'],
  [/^WRONGPASS\b/, 'unauthenticated', 'Redis does not accept the password of the client'],
  [
    /^NOPERM\b|ACL failure|can't run this command/,
    'forbidden',
    'the user of this connection lacks a right: see docs/redis.md for those it needs',
  ],
  [
    /compiling script.*near '#'/,
    'unsupported',
    'this Redis is too old: Redis 7 or newer is needed',
  ],
  [
    /^FORM\b/,
    'invalid-argument',
    'the namespace holds the other form of Leasehold: use another namespace, or open the form that it holds',
  ],
  [/^FORMAT\b/, 'unsupported', 'these data were written by another version of Leasehold'],
]

export function isOutOfMemory(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('OOM')
}

/**
 * Turns the failure of a run into our error. What Redis refuses before it begins was not done.
 * Everything else is unknown: a broken connection, a server that starts, is replaced or is busy.
 * For some of these it is certain that nothing was done. But then repeating is right, which is what
 * unknown means.
 */
export function faultOf(error: unknown): LeaseholdError {
  if (error instanceof LeaseholdError) return error
  const message = error instanceof Error ? error.message : String(error)
  for (const [mark, code, meaning] of REFUSED) {
    if (mark.test(message)) {
      return new LeaseholdError(code, `${meaning} (${message})`, { cause: error })
    }
  }
  if (/\bREADONLY\b/.test(message)) {
    return unknown(`this Redis is a read-only replica: connect to the master (${message})`, error)
  }
  return unknown(`Redis gave no reliable answer: ${message}`, error)
}

export function unknown(message: string, cause?: unknown): LeaseholdError {
  return new LeaseholdError('unknown-outcome', message, { cause })
}

export function closedError(): LeaseholdError {
  return new LeaseholdError('closed', 'the store is closed: open it again')
}
