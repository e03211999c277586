import { type ErrorCode, LeaseholdError } from '../../../port/index.ts'
import { GrpcError } from './channel.ts'

/** The gRPC codes of etcd's refusals. */
const INVALID_ARGUMENT = 3
const PERMISSION_DENIED = 7
const RESOURCE_EXHAUSTED = 8
const UNIMPLEMENTED = 12
const UNAUTHENTICATED = 16

interface Refused {
  readonly code: number
  readonly message: RegExp
  readonly is: ErrorCode
  readonly fix: string
}

const LOGIN = 'etcd does not accept the login: set auth to an existing user and its password'
const TOO_LARGE = 'the entry is too large for this etcd: raise its --max-request-bytes'

const REFUSED: readonly Refused[] = [
  {
    code: PERMISSION_DENIED,
    message: /./,
    is: 'forbidden',
    fix: 'etcd forbids the call: give the user a role that may read and write under the prefix',
  },
  { code: UNAUTHENTICATED, message: /./, is: 'unauthenticated', fix: LOGIN },
  {
    code: INVALID_ARGUMENT,
    message: /authentication failed|user name is empty|auth store/,
    is: 'unauthenticated',
    fix: LOGIN,
  },
  {
    code: RESOURCE_EXHAUSTED,
    message: /space exceeded/,
    is: 'storage-full',
    fix: 'etcd has reached its quota: compact it, defragment it, and disarm its alarm',
  },
  { code: INVALID_ARGUMENT, message: /too large/, is: 'limit-exceeded', fix: TOO_LARGE },
  { code: RESOURCE_EXHAUSTED, message: /larger than max/, is: 'limit-exceeded', fix: TOO_LARGE },
  {
    code: UNIMPLEMENTED,
    message: /./,
    is: 'unsupported',
    fix: 'the server has no v3 API of etcd: use endpoints of etcd 3.4 or later',
  },
]

/** Whether the login has expired or users were changed: then the call was not carried out. */
export function isStaleLogin(error: unknown): boolean {
  if (!(error instanceof GrpcError)) return false
  return error.code === UNAUTHENTICATED || /auth store is old/.test(error.message)
}

/** The error for the caller: refused for a known reason, or otherwise of unknown outcome. */
export function faultOf(error: Error, endpoints: readonly string[]): LeaseholdError {
  const { message } = error
  const code = error instanceof GrpcError ? error.code : -1
  const refused = REFUSED.find((each) => each.code === code && each.message.test(message))
  if (refused) return new LeaseholdError(refused.is, `${refused.fix} (etcd said: ${message})`)
  const fix = 'check that a majority of its members is running and reachable'
  const unknown = `etcd at ${endpoints.join(', ')} gave no answer (${message}): ${fix}`
  return new LeaseholdError('unknown-outcome', unknown, { cause: error })
}
