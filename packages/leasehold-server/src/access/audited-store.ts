import {
  type ClaimRequest,
  type GrantRequest,
  type Guarantees,
  isLeaseholdError,
  type LeaseId,
  type LeaseStore,
  type Observer,
  type Query,
  type Reading,
  type ReleaseRequest,
  type RevokeRequest,
  type UpdateRequest,
  type WatchTarget,
} from 'leasehold/port'
import type { Audit } from './audit.ts'

/**
 * The store as everybody may use it where no token exists: nothing is refused, but ending keys by
 * force is written down. (A lease is ended by its own client, too, every time that it closes.)
 */
export class AuditedStore implements LeaseStore {
  readonly #store: LeaseStore
  readonly #audit: Audit

  constructor(store: LeaseStore, audit: Audit) {
    this.#store = store
    this.#audit = audit
  }

  get guarantees(): Guarantees {
    return this.#store.guarantees
  }

  grant(request: GrantRequest) {
    return this.#store.grant(request)
  }

  renew(leases: readonly LeaseId[]) {
    return this.#store.renew(leases)
  }

  async revoke(request: RevokeRequest) {
    const record = (outcome: string) => {
      // What names nothing could have ended nothing.
      if (outcome === 'invalid-argument') return
      const { target, by = 'everybody', why } = request
      if (!('lease' in target)) this.#audit.record({ action: 'revoke', by, target, why, outcome })
    }
    try {
      const answer = await this.#store.revoke(request)
      record('done')
      return answer
    } catch (error) {
      record(isLeaseholdError(error) ? error.code : 'unknown-outcome')
      throw error
    }
  }

  claim(request: ClaimRequest) {
    return this.#store.claim(request)
  }

  release(request: ReleaseRequest) {
    return this.#store.release(request)
  }

  update(request: UpdateRequest) {
    return this.#store.update(request)
  }

  read<Q extends Query>(query: Q): Promise<Reading<Q>> {
    return this.#store.read(query)
  }

  watch(target: WatchTarget, observer: Observer) {
    return this.#store.watch(target, observer)
  }

  async close(): Promise<void> {}
}
