import {
  type Changed,
  LeaseholdError,
  type LeaseId,
  type LeaseReading,
  type LeaseStore,
  type ReleaseRequest,
  type Renewed,
  type Revoked,
  type RevokeRequest,
} from 'leasehold/port'

/**
 * The server's own actions on a caller's lease, to finish or undo what the caller requested. They
 * ignore rights, quotas and the end of the caller's access token, because the caller decides nothing
 * here.
 */
export interface ServerActions {
  readLease(lease: LeaseId): Promise<LeaseReading>
  renew(lease: LeaseId): Promise<Renewed>
  revoke(request: RevokeRequest): Promise<Revoked>
  release(request: ReleaseRequest): Promise<Changed>
}

/**
 * `plain` converts the caller's lease id into the id in the store. `ended` is called with the latter.
 */
export function createServerActions(
  store: LeaseStore,
  plain: (lease: LeaseId) => LeaseId = (lease) => lease,
  ended: (lease: LeaseId) => void = () => {},
): ServerActions {
  return {
    readLease: (lease) => store.read({ lease: plain(lease) }),
    renew: (lease) => store.renew([plain(lease)]),
    revoke: async (request) => {
      const { target } = request
      if (!('lease' in target)) return store.revoke(request)
      const lease = plain(target.lease)
      const answer = await store.revoke({ ...request, target: { lease } })
      if (answer.leases > 0) ended(lease)
      return answer
    },
    release: (request) => store.release({ ...request, lease: plain(request.lease) }),
  }
}

/**
 * Revokes the waiting claims of these leases, even if one becomes a holder meanwhile. Holders stay. A
 * claim on several keys waits until it holds all of them.
 */
export async function withdrawWaiting(
  store: LeaseStore,
  leases: Iterable<LeaseId>,
  why: string,
): Promise<void> {
  let failure: { readonly error: unknown } | undefined
  for (const lease of leases) {
    try {
      await withdrawOf(store, lease, why)
    } catch (error) {
      failure ??= { error }
    }
  }
  if (failure !== undefined) throw failure.error
}

async function withdrawOf(store: LeaseStore, lease: LeaseId, why: string): Promise<void> {
  const { claims } = await store.read({ lease })
  const waiting = new Set(claims.filter((one) => one.heldSince === undefined).map(tokenOf))
  for (const { key, token } of claims) {
    if (!waiting.has(token)) continue
    await store.revoke({ target: { key, token }, by: 'leasehold-server', why })
  }
}

function tokenOf({ token }: { readonly token: number }): number {
  return token
}

/** The outcome is unknown while the claim may still become a holder. */
export function notWithdrawn(cause: unknown): LeaseholdError {
  const message = cause instanceof Error ? cause.message : String(cause)
  return new LeaseholdError(
    'unknown-outcome',
    `the claim could not be withdrawn: ${message}. It may hold its keys until its lease ends`,
    { cause },
  )
}
