import {
  type End,
  isLeaseholdError,
  LeaseholdError,
  type LeaseId,
  type Refusal,
  show,
} from '../../port/index.ts'
import type { GrpcError } from './client.ts'

/** gRPC's numbers for how a call failed. */
const INVALID_ARGUMENT = 3
const NOT_FOUND = 5
const PERMISSION_DENIED = 7
const RESOURCE_EXHAUSTED = 8
const FAILED_PRECONDITION = 9
const OUT_OF_RANGE = 11
const UNIMPLEMENTED = 12
const UNAVAILABLE = 14
const UNAUTHENTICATED = 16

/**
 * What a failed call means: `refused` for good; `unsent`, so that another member can be asked
 * whatever it was; `stale-login`, to be sent again after logging in; or `unknown`.
 */
export type Fault =
  | { readonly kind: 'refused'; readonly error: LeaseholdError }
  | { readonly kind: 'absent' | 'present' | 'compacted' }
  | { readonly kind: 'unsent' | 'unknown' | 'stale-login'; readonly trouble: string }

/** Said by grpc-js where it never had a connection, and by a member that has no leader to ask. */
const UNSENT =
  /^(No connection established|Name resolution failed|etcdserver: (no leader|not capable|too many requests|server stopped))/

export function faultOf({ code, details, message }: GrpcError): Fault {
  const said = details ?? message
  if (code === UNAUTHENTICATED || /invalid auth token/.test(said)) {
    return { kind: 'stale-login', trouble: said }
  }
  if (code === UNAVAILABLE || /too many requests/.test(said)) {
    return { kind: UNSENT.test(said) ? 'unsent' : 'unknown', trouble: said }
  }
  if (code === NOT_FOUND && /lease not found/.test(said)) return { kind: 'absent' }
  if (code === FAILED_PRECONDITION && /lease already exists/.test(said)) return { kind: 'present' }
  if (code === OUT_OF_RANGE && /compacted/.test(said)) return { kind: 'compacted' }
  const error = refusalOf(code, said)
  return error ? { kind: 'refused', error } : { kind: 'unknown', trouble: said }
}

function refusalOf(code: number | undefined, said: string): LeaseholdError | undefined {
  if (code === PERMISSION_DENIED) {
    return new LeaseholdError(
      'forbidden',
      `etcd refuses it (${said}): give the user a role that may read and write under the store's prefix`,
    )
  }
  if (/authentication failed|user name is empty/.test(said)) {
    return new LeaseholdError(
      'unauthenticated',
      `etcd does not accept the login (${said}): set auth to a user that etcd knows, with its password`,
    )
  }
  if (code === RESOURCE_EXHAUSTED && /space exceeded/.test(said)) {
    return new LeaseholdError(
      'storage-full',
      `etcd has reached its quota (${said}): compact and defragment it, and disarm its alarm`,
    )
  }
  // A request that passes gRPC's own limit was not even read: nothing was done.
  const isUnread = code === RESOURCE_EXHAUSTED && /^grpc: received message larger/.test(said)
  const isTooLarge = code === INVALID_ARGUMENT && /too large|too many operations/.test(said)
  if (isUnread || isTooLarge) {
    return new LeaseholdError('limit-exceeded', `etcd does not take so large a request (${said})`)
  }
  if (code === UNIMPLEMENTED) {
    return new LeaseholdError(
      'unsupported',
      `what answers there is no etcd with the v3 API (${said}): give endpoints of etcd 3.4 or later`,
    )
  }
  return undefined
}

export function unanswered(trouble: string, endpoints: readonly string[]): LeaseholdError {
  return new LeaseholdError(
    'unknown-outcome',
    `etcd at ${endpoints.join(', ')} gave no answer (${trouble}): it may have been carried out`,
  )
}

export function closedError(): LeaseholdError {
  return new LeaseholdError('closed', CLOSED)
}

const CLOSED = 'the store was closed'

/** The store was closed while nobody knew yet what would come of a call that was sent. */
export function closedMidway(): LeaseholdError {
  return new LeaseholdError('unknown-outcome', `${CLOSED} midway: it may have been carried out`)
}

/** What may befall any call at any time, and says nothing about what it did before. */
const INCIDENTS = new Set(['closed', 'storage-full', 'forbidden', 'unauthenticated'])

/** The rest of a call that has changed something: it cannot be called refused any more. */
export async function afterChange<A>(rest: Promise<A>): Promise<A> {
  try {
    return await rest
  } catch (error) {
    if (!isLeaseholdError(error) || !INCIDENTS.has(error.code)) throw error
    if (error.code === 'closed') throw closedMidway()
    const message = `a part of it was carried out, but then ${error.message}`
    throw new LeaseholdError('unknown-outcome', message, { cause: error })
  }
}

/** Why there is no such lease. */
export function noLease(id: LeaseId, end: End | undefined): Refusal {
  if (end === undefined) {
    const message = `there is no lease ${show(id)}: it never was, or it ended long ago; take a new one`
    return { code: 'lease-not-found', message }
  }
  const by = end.by ? ` by ${end.by}` : ''
  const why = end.why ? `, because ${end.why}` : ''
  const message = `lease ${id} has ended: ${end.reason}${by}${why}; take a new one`
  return { code: 'lease-ended', message, end }
}

export function noClaim(id: LeaseId, key: string, token: number, first: number): Refusal {
  const now = first === 0 ? 'nobody has claimed it' : `token ${first} is first`
  const message = `lease ${id} has no claim with token ${token} on ${show(key)}: it was released or taken away (now ${now})`
  return { code: 'claim-not-found', message }
}

export function fullLine(key: string, count: number): Refusal {
  const message = `key ${show(key)} has ${count} claims, the most that it may have: wait until some are released`
  return { code: 'limit-exceeded', message }
}

export function fullLease(lease: LeaseId, count: number, most: number): Refusal {
  const message = `lease ${lease} has ${count} claims of at most ${most}: release some, or use another lease`
  return { code: 'limit-exceeded', message }
}

export function tooManyClaims(count: number, most: number): Refusal {
  const message = `a lease has at most ${most} claims, not ${count}: claim fewer, or use several leases`
  return { code: 'limit-exceeded', message }
}
