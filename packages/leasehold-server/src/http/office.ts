import { Leasehold, type Permit } from 'leasehold'
import { LeaseholdError, type LeaseId, type LeaseStore, type RevokeRequest } from 'leasehold/port'
import type { Admission } from '../access/index.ts'
import type { Around } from './route.ts'

/**
 * What is kept for one principal from one request to the next: its sight of the pools, and the
 * permits that it took over HTTP, so that their use is entered into the pool's books when they are
 * returned.
 *
 * A permit itself is a lease that nobody here renews: the caller does. A server that stops leaves
 * it as it is, and the next one knows it by its lease; only the books then count it as booked.
 */
export class Office {
  readonly leasehold: Leasehold
  readonly permits: Map<LeaseId, Permit>
  readonly #admission: Admission
  readonly #letGo: () => void

  private constructor(
    leasehold: Leasehold,
    permits: Map<LeaseId, Permit>,
    admission: Admission,
    letGo: () => void,
  ) {
    this.leasehold = leasehold
    this.permits = permits
    this.#admission = admission
    this.#letGo = letGo
  }

  static async open(admission: Admission, { clock, random }: Around): Promise<Office> {
    const permits = new Map<LeaseId, Permit>()
    const { store, letGo } = lasting(admission, permits)
    const holder = admission.principal.name
    const leasehold = await Leasehold.open(store, { holder, clock, random })
    return new Office(leasehold, permits, admission, letGo)
  }

  keep(permit: Permit): void {
    const { lease, signal } = permit
    this.permits.set(lease, permit)
    signal.addEventListener('abort', () => this.permits.delete(lease), { once: true })
    if (signal.aborted) this.permits.delete(lease)
  }

  /** Ends what waits here, and leaves what is held to those who hold it. */
  async close(): Promise<void> {
    this.#letGo()
    await this.leasehold.close()
    this.#admission.leave()
  }
}

/**
 * The store, but from `letGo` on the permits that were given are not given back: a client that closes
 * would do so. What nobody was given is given back, also when the principal may do nothing any more.
 */
function lasting(
  { store, acts, principal }: Admission,
  permits: ReadonlyMap<LeaseId, Permit>,
): { readonly store: LeaseStore; readonly letGo: () => void } {
  let over = false
  let given: ReadonlySet<LeaseId> = new Set()
  const refused = () => Promise.reject(new LeaseholdError('closed', 'the server stops'))
  const giving = () => (over || principal.ended !== undefined ? acts : store)
  const isGiven = ({ target }: RevokeRequest) => 'lease' in target && given.has(target.lease)
  return {
    letGo: () => {
      over = true
      // As they are now: a client that closes takes its permits for lost.
      given = new Set(permits.keys())
    },
    store: {
      guarantees: store.guarantees,
      grant: (request) => (over ? refused() : store.grant(request)),
      renew: (leases) => (over ? refused() : store.renew(leases)),
      revoke: (request) => (over && isGiven(request) ? refused() : giving().revoke(request)),
      claim: (request) => (over ? refused() : store.claim(request)),
      release: (request) => giving().release(request),
      update: (request) => store.update(request),
      read: (query) => store.read(query),
      watch: (target, observer) => store.watch(target, observer),
      close: async () => {},
    },
  }
}
