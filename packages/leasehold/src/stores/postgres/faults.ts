import { type ErrorCode, LeaseholdError, type Refusal } from '../../port/index.ts'

/** Our own error code for a schema that has the other form. */
export const OTHER_FORM = 'LH001'

/**
 * The meaning of a failed statement, by the code of its error (SQLSTATE, or its first two
 * characters). If the server reports an error for a statement, its transaction was rolled back. Only
 * if the server or the connection goes away is it unknown whether the commit came first.
 *
 * Some failures have certainly changed nothing and are called unknown anyway: a caller should treat a
 * database that is away, out of connections, or busy for a while like a lost answer, and repeat the
 * call.
 */
const MEANINGS: readonly (readonly [states: readonly string[], ErrorCode, string])[] = [
  [['53100'], 'storage-full', 'the disk of the database is full: make room'],
  [['53'], 'unknown-outcome', 'the database has no resources left (connections, memory)'],
  [['28'], 'unauthenticated', 'the database does not accept the login of the client'],
  [['42501'], 'forbidden', 'the database user has no right to the schema: grant it'],
  [
    ['42P01', '42883', '3F000', '42703'],
    'storage-damaged',
    'tables or functions of the schema are missing: open the store again, with migrate',
  ],
  [
    [OTHER_FORM],
    'invalid-argument',
    'the schema holds the other form of Leasehold: use another schema, or open the form that it holds',
  ],
  [['XX001', 'XX002'], 'storage-damaged', 'the database finds its own files damaged'],
  [
    ['25006'],
    'unknown-outcome',
    'the database is read-only, as a standby is: connect to the primary',
  ],
  [['55P03'], 'unknown-outcome', 'others had the store locked for too long: nothing was changed'],
  [['57014'], 'unknown-outcome', 'the statement was cancelled: raise statement_timeout'],
  [['40'], 'unknown-outcome', 'the transaction was rolled back in favour of others, repeatedly'],
  [['57', '08'], 'unknown-outcome', 'the database ended the connection: it may have been done'],
]

/** A failure that ends if the statement is repeated, and that leaves nothing behind. */
export function isConflict(error: unknown): boolean {
  const state = stateOf(error)
  return state === '40001' || state === '40P01'
}

/** Whether the connection failed, and not the statement. */
export function isLost(error: unknown): boolean {
  const state = stateOf(error)
  return state === undefined || /^(57P|08)/.test(state)
}

export function faultOf(error: unknown): LeaseholdError {
  if (error instanceof LeaseholdError) return error
  const state = stateOf(error)
  const said = error instanceof Error ? error.message : String(error)
  if (state === undefined) {
    return new LeaseholdError(
      'unknown-outcome',
      `the connection to the database failed (${said}): it may have been done`,
      { cause: error },
    )
  }
  const [, code, meaning] =
    MEANINGS.find(([states]) => states.some((each) => state.startsWith(each))) ??
    (['', 'storage-failed', 'the database refused the statement'] as const)
  return new LeaseholdError(code, `${meaning} (PostgreSQL ${state}: ${said})`, { cause: error })
}

export const CLOSED: Refusal = { code: 'closed', message: 'the store is closed: open it again' }

/** Errors of the libraries themselves have codes of another form, such as ECONNRESET. */
function stateOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | undefined)?.code
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined
}
