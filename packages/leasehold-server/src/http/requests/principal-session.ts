import { Leasehold, type Permit } from 'leasehold'
import {
  delegate,
  LeaseholdError,
  type LeaseId,
  type LeaseStore,
  type RevokeRequest,
} from 'leasehold/port'
import type { Admission } from '../../access/index.ts'
import type { HttpDependencies } from '../route.ts'

/**
 * The state of one principal across requests: its views of pools, and the permits that it took over
 * HTTP, so that their usage is recorded when they are returned.
 *
 * The caller renews a permit's lease, not the server. A stopping server leaves the permit, and the next
 * server recognises it by its lease; its usage then counts as booked.
 */
export class PrincipalSession {
  readonly leasehold: Leasehold
  readonly permits: Map<LeaseId, Permit>
  readonly #admission: Admission
  readonly #keepPermits: () => void

  private constructor(
    leasehold: Leasehold,
    permits: Map<LeaseId, Permit>,
    admission: Admission,
    keepPermits: () => void,
  ) {
    this.leasehold = leasehold
    this.permits = permits
    this.#admission = admission
    this.#keepPermits = keepPermits
  }

  static async open(
    admission: Admission,
    { clock, random }: HttpDependencies,
  ): Promise<PrincipalSession> {
    const permits = new Map<LeaseId, Permit>()
    const { store, keepPermits } = permitKeepingStore(admission, permits)
    const holder = admission.principal.name
    const leasehold = await Leasehold.open(store, { holder, clock, random })
    return new PrincipalSession(leasehold, permits, admission, keepPermits)
  }

  keep(permit: Permit): void {
    const { lease, signal } = permit
    this.permits.set(lease, permit)
    signal.addEventListener('abort', () => this.permits.delete(lease), { once: true })
    if (signal.aborted) this.permits.delete(lease)
  }

  /** Ends waiting claims, and leaves permits with their holders. */
  async close(): Promise<void> {
    this.#keepPermits()
    await this.leasehold.close()
    this.#admission.leave()
  }
}

/**
 * A store that after `keepPermits` releases no permit of a caller, which the closing client would do.
 * Everything else is still released, even if the access token has ended.
 */
function permitKeepingStore(
  { store, serverActions, principal }: Admission,
  permits: ReadonlyMap<LeaseId, Permit>,
): { readonly store: LeaseStore; readonly keepPermits: () => void } {
  let over = false
  let given: ReadonlySet<LeaseId> = new Set()
  const refused = () => Promise.reject(new LeaseholdError('closed', 'the server is stopping'))
  const releaser = () => (over || principal.ended !== undefined ? serverActions : store)
  const isGiven = ({ target }: RevokeRequest) => 'lease' in target && given.has(target.lease)
  return {
    keepPermits: () => {
      over = true
      // A copy: a closing client treats its permits as lost.
      given = new Set(permits.keys())
    },
    store: delegate(store, {
      grant: (request) => (over ? refused() : store.grant(request)),
      renew: (leases) => (over ? refused() : store.renew(leases)),
      revoke: (request) => (over && isGiven(request) ? refused() : releaser().revoke(request)),
      claim: (request) => (over ? refused() : store.claim(request)),
      release: (request) => releaser().release(request),
      close: async () => {},
    }),
  }
}
