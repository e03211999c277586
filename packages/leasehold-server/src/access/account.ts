import type { LeaseId, LeaseStore, Revision } from 'leasehold/port'
import type { Principal } from './principal.ts'
import { exceeded, Usage } from './quota.ts'

/** A lease that is counted: with how many claims, and when some were last released. */
interface Counted {
  claims: number
  releasedAt: Revision
}

/** What is used on behalf of one principal, over all that it has open, against its quota. */
export class Account {
  readonly usage = new Usage()
  readonly #leases = new Map<LeaseId, Counted>()
  /** What the calls that are under way will use: several that come at once must not pass together. */
  #comingLeases = 0
  #comingClaims = 0

  /**
   * Carries out a call that uses so much, or refuses it where that is more than may be had. The call
   * itself must tell what has come of it, by `granted` and `claimed`, before it is fulfilled.
   */
  async within<Answer>(
    store: LeaseStore,
    who: Principal,
    { leases, claims }: { readonly leases: number; readonly claims: number },
    call: () => Promise<Answer>,
  ): Promise<Answer> {
    if (this.#excess(who, leases, claims) !== undefined) await this.#recount(store)
    const excess = this.#excess(who, leases, claims)
    if (excess !== undefined) {
      this.usage.refused++
      throw excess
    }
    this.#comingLeases += leases
    this.#comingClaims += claims
    try {
      return await call()
    } finally {
      this.#comingLeases -= leases
      this.#comingClaims -= claims
    }
  }

  /** A lease was granted: now, or before where the request was sent again. */
  granted(lease: LeaseId, claims: number): void {
    if (this.#leases.has(lease)) return
    this.#leases.set(lease, { claims, releasedAt: 0 })
    this.usage.leases = this.#leases.size
    this.usage.claims += claims
  }

  /** One that was sent again is counted again: before anybody is refused, all is counted anew. */
  claimed(lease: LeaseId, claims: number): void {
    this.#add(this.#leases.get(lease), claims)
  }

  /** One that was sent again has the revision of the first, and frees nothing more. */
  released(lease: LeaseId, claims: number, revision: Revision): void {
    const counted = this.#leases.get(lease)
    if (counted === undefined || revision <= counted.releasedAt) return
    counted.releasedAt = revision
    this.#add(counted, -claims)
  }

  forget(lease: LeaseId): void {
    this.usage.claims -= this.#leases.get(lease)?.claims ?? 0
    this.#leases.delete(lease)
    this.usage.leases = this.#leases.size
  }

  #add(counted: Counted | undefined, claims: number): void {
    if (counted === undefined) return
    counted.claims += claims
    this.usage.claims += claims
  }

  #excess({ name, quota }: Principal, leases: number, claims: number): Error | undefined {
    if (this.#leases.size + this.#comingLeases + leases > (quota.leases ?? Infinity)) {
      return exceeded(name, `${quota.leases} leases at a time`, 'end one first')
    }
    if (this.usage.claims + this.#comingClaims + claims > (quota.claims ?? Infinity)) {
      return exceeded(name, `${quota.claims} claims at a time`, 'release one first')
    }
    return undefined
  }

  /** Leases end by themselves too: before anybody is refused, those that have are left out. */
  async #recount(store: LeaseStore): Promise<void> {
    for (const [lease, counted] of [...this.#leases]) {
      const reading = await store.read({ lease, limit: 1 })
      if (reading.lease === undefined) this.forget(lease)
      else if (this.#leases.has(lease)) this.#add(counted, reading.lease.claims - counted.claims)
    }
  }
}
