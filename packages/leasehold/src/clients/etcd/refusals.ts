import { type ErrorCode, LeaseholdError } from '../../port/index.ts'
import { GrpcError } from './channel.ts'

/** The numbers that gRPC has for the refusals of etcd. */
const INVALID_ARGUMENT = 3
const PERMISSION_DENIED = 7
const RESOURCE_EXHAUSTED = 8
const UNIMPLEMENTED = 12
const UNAUTHENTICATED = 16

interface Refused {
  readonly code: number
  readonly said: RegExp
  readonly is: ErrorCode
  readonly fix: string
}

const LOGIN =
  'etcd does not accept the login: set auth to a user that etcd knows, with its password'
const TOO_LARGE = 'the entry is too large for this etcd: raise its --max-request-bytes'

const REFUSED: readonly Refused[] = [
  {
    code: PERMISSION_DENIED,
    said: /./,
    is: 'forbidden',
    fix: 'etcd forbids it: give the user a role that may read and write under the prefix',
  },
  { code: UNAUTHENTICATED, said: /./, is: 'unauthenticated', fix: LOGIN },
  {
    code: INVALID_ARGUMENT,
    said: /authentication failed|user name is empty|auth store/,
    is: 'unauthenticated',
    fix: LOGIN,
  },
  {
    code: RESOURCE_EXHAUSTED,
    said: /space exceeded/,
    is: 'storage-full',
    fix: 'etcd has reached its quota: compact and defragment it, and disarm its alarm',
  },
  { code: INVALID_ARGUMENT, said: /too large/, is: 'limit-exceeded', fix: TOO_LARGE },
  { code: RESOURCE_EXHAUSTED, said: /larger than max/, is: 'limit-exceeded', fix: TOO_LARGE },
  {
    code: UNIMPLEMENTED,
    said: /./,
    is: 'unsupported',
    fix: 'what answers is no etcd with the v3 API: give endpoints of etcd 3.4 or later',
  },
]

/** The login has expired, or users were changed since: the call was not carried out. */
export function isStaleLogin(error: unknown): boolean {
  if (!(error instanceof GrpcError)) return false
  return error.code === UNAUTHENTICATED || /auth store is old/.test(error.message)
}

/** What a failed call is to the caller: refused for a known reason, or else unknown. */
export function faultOf(error: Error, endpoints: readonly string[]): LeaseholdError {
  const { message } = error
  const code = error instanceof GrpcError ? error.code : -1
  const refused = REFUSED.find((each) => each.code === code && each.said.test(message))
  if (refused) return new LeaseholdError(refused.is, `${refused.fix} (etcd said: ${message})`)
  const fix = 'check that a majority of its members runs and can be reached'
  const text = `etcd at ${endpoints.join(', ')} gave no answer (${message}): ${fix}`
  return new LeaseholdError('unknown-outcome', text, { cause: error })
}
