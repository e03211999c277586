import type {
  ClaimRequest,
  ClaimSpec,
  GrantRequest,
  LeaseId,
  Query,
  ReleaseRequest,
  RevokeRequest,
  UpdateRequest,
  WatchTarget,
} from '../../port/index.ts'
import { endless, quote, quoteAll, type RequestMessage } from './protocol.ts'

/**
 * Requests as messages: a client writes them with `write…` and the server reads them with `read…`.
 *
 * What is asked for most often, to claim, to release and to renew, is written field by field; the
 * rest is the port's own object. A reader takes what it is given as it is: whether the values are
 * right is the store's to judge, which says what is wrong with them.
 */
export function writeClaim(id: number, request: ClaimRequest): string {
  const { lease, claims, ifFree, request: name } = request
  const first = claims[0]!
  const specs = claims.length === 1 && isPlain(first) ? `[${quote(first.key)}]` : specsOf(claims)
  const head = `[${id},"claim",${quote(lease)},${specs},${ifFree ? 1 : 0}`
  return name === undefined ? `${head}]` : `${head},${quote(name)}]`
}

export function readClaim(message: RequestMessage): ClaimRequest {
  const [, , lease, claims, ifFree, request] = message
  return {
    lease: lease as LeaseId,
    claims: Array.isArray(claims) ? claims.map(specFrom) : (claims as []),
    ifFree: ifFree === 1,
    request: request as string | undefined,
  }
}

export function writeRelease(id: number, request: ReleaseRequest): string {
  const { lease, keys, token, request: name } = request
  const head = `[${id},"release",${quote(lease)},${token},${quoteAll(keys)}`
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

export function writeTie(id: number, leases: readonly LeaseId[]): string {
  return `[${id},"tie",${JSON.stringify(leases)}]`
}

/** The leases of `renew` and `tie`. What is no lease is nobody's, and is answered as such. */
export function readLeases(message: RequestMessage): readonly LeaseId[] {
  const leases = message[2]
  if (!Array.isArray(leases)) return leases as LeaseId[]
  return leases.every((lease) => typeof lease === 'string') ? leases : leases.map(String)
}

export function writeObject(
  id: number,
  operation: 'grant' | 'revoke' | 'update' | 'read' | 'watch',
  request: GrantRequest | RevokeRequest | UpdateRequest | Query | WatchTarget,
): string {
  return `[${id},"${operation}",${JSON.stringify(request)}]`
}

/** A lease whose ttl is infinite comes as one whose ttl is null. */
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
