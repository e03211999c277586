import {
  type ClaimRequest,
  type ClaimSpec,
  checkLeases,
  type GrantRequest,
  invalid,
  LeaseholdError,
  type LeaseId,
  type Query,
  type ReleaseRequest,
  type RevokeRequest,
  show,
  type UpdateRequest,
  type WatchTarget,
} from '../../port/index.ts'
import { endless, quote, quoteAll, type RequestMessage } from './protocol.ts'

/**
 * Requests as messages: a client writes them with `write…` and the server reads them with `read…`.
 *
 * The most common requests, to claim, release and renew, are written field by field. The others are
 * the port's own objects. A reader does not check values: the store does that, and says what is
 * wrong with them.
 */
export function writeClaim(id: number, request: ClaimRequest): string {
  const { lease, claims, ifFree, replaces, request: name } = request
  const first = claims[0]!
  const specs = claims.length === 1 && isPlain(first) ? `[${quote(first.key)}]` : specsOf(claims)
  const head = `[${id}${claimUnder(lease)}${specs}${ifFree ? ',1' : ',0'}`
  if (replaces !== undefined) return `${head},${JSON.stringify(name ?? null)},${replaces}]`
  return name === undefined ? `${head}]` : `${head},${quote(name)}]`
}

/** What comes between the id and the keys. Nearly all claims in a row are under the same lease. */
const claimUnder = remembering((lease) => `,"claim",${quote(lease)},`)
const releaseUnder = remembering((lease) => `,"release",${quote(lease)},`)

/** Remembers the last result. */
function remembering(write: (text: string) => string): (text: string) => string {
  let last = ''
  let written = write(last)
  return (text) => {
    if (text !== last) {
      written = write(text)
      last = text
    }
    return written
  }
}

export function readClaim(message: RequestMessage): ClaimRequest {
  const [, , lease, claims, ifFree, request, replaces] = message
  if (ifFree !== undefined && ifFree !== 0 && ifFree !== 1) {
    throw invalid(`ifFree is ${show(ifFree)}: it must be 1 or 0`)
  }
  return {
    lease: lease as LeaseId,
    claims: Array.isArray(claims) ? claims.map(specFrom) : (claims as []),
    ifFree: ifFree === 1,
    ...(replaces !== undefined && { replaces: replaces as number }),
    // Null stands for no request id only in front of `replaces`.
    request: (replaces !== undefined && request === null ? undefined : request) as
      | string
      | undefined,
  }
}

export function writeRelease(id: number, request: ReleaseRequest): string {
  const { lease, keys, token, request: name } = request
  const head = `[${id}${releaseUnder(lease)}${token},${quoteAll(keys)}`
  return name === undefined ? `${head}]` : `${head},${quote(name)}]`
}

export function readRelease(message: RequestMessage): ReleaseRequest {
  const [, , lease, token, keys, request] = message
  return {
    lease: lease as LeaseId,
    token: token as number,
    keys: keys as string[],
    request: request as string | undefined,
  }
}

export function writeRenew(id: number, leases: readonly LeaseId[]): string {
  return `[${id},"renew",${JSON.stringify(leases)}]`
}

/** Leases in groups, each with at most this many characters in a message. */
export function inGroups(leases: readonly LeaseId[], characters: number): (readonly LeaseId[])[] {
  const groups: (readonly LeaseId[])[] = []
  let size = 0
  let start = 0
  for (let at = 0; at < leases.length; at++) {
    const length = leases[at]!.length + 3
    if (size + length > characters && at > start) {
      groups.push(leases.slice(start, at))
      start = at
      size = 0
    }
    size += length
  }
  if (start < leases.length) groups.push(start === 0 ? leases : leases.slice(start))
  return groups
}

export function writeTie(id: number, leases: readonly LeaseId[]): string {
  return `[${id},"tie",${JSON.stringify(leases)}]`
}

/** The leases of `renew` and `tie`. Refused with `invalid-argument` if they are not ids. */
export function readLeases(message: RequestMessage): readonly LeaseId[] {
  const leases = message[2] as readonly LeaseId[]
  const complaint = checkLeases(leases)
  if (complaint) throw LeaseholdError.from(complaint)
  return leases
}

export function writeObject(
  id: number,
  operation: 'grant' | 'revoke' | 'update' | 'read' | 'watch',
  request: GrantRequest | RevokeRequest | UpdateRequest | Query | WatchTarget,
): string {
  return `[${id},"${operation}",${JSON.stringify(request)}]`
}

/** A lease with an infinite ttl comes with a ttl of null. */
export function readGrant(message: RequestMessage): GrantRequest {
  const request = message[2] as GrantRequest
  if (typeof request !== 'object' || request === null) return request
  if (request.ttl !== null && request.maxLife !== null) return request
  const { maxLife } = request
  return {
    ...request,
    ttl: request.ttl === null ? Infinity : request.ttl,
    ...(maxLife !== undefined && { maxLife: endless(maxLife) }),
  }
}

export function writeUnwatch(id: number, watch: number): string {
  return `[${id},"unwatch",${watch}]`
}

function isPlain({ mode, limit, value }: ClaimSpec): boolean {
  return (mode === undefined || mode === 'exclusive') && limit === undefined && value === undefined
}

function specsOf(claims: readonly ClaimSpec[]): string {
  return JSON.stringify(
    claims.map((claim) => {
      const { key, mode, limit, value } = claim
      return isPlain(claim) ? key : { key, mode, limit, value }
    }),
  )
}

function specFrom(spec: unknown): ClaimSpec {
  return typeof spec === 'string' ? { key: spec } : (spec as ClaimSpec)
}
