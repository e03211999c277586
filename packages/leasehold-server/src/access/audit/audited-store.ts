import { delegate, isLeaseholdError, type LeaseStore } from 'leasehold/port'
import type { Audit } from './audit.ts'

/**
 * The store for everybody while no access token exists. It refuses nothing, but records the forced
 * ending of keys. (A client also revokes its own lease whenever it closes, which is not recorded.)
 */
export function auditedStore(store: LeaseStore, audit: Audit): LeaseStore {
  return delegate(store, {
    revoke: async (request) => {
      const record = (outcome: string) => {
        // A malformed request could not have ended anything.
        if (outcome === 'invalid-argument') return
        const { target, by = 'everybody', why } = request
        if (!('lease' in target)) audit.record({ action: 'revoke', by, target, why, outcome })
      }
      try {
        const answer = await store.revoke(request)
        record('done')
        return answer
      } catch (error) {
        record(isLeaseholdError(error) ? error.code : 'unknown-outcome')
        throw error
      }
    },
    close: async () => {},
  })
}
