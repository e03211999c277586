import type { LeaseStore } from './lease-store.ts'

/** A store that passes every call on to `store`, except those that `overrides` answers itself. */
export function delegate(store: LeaseStore, overrides: Partial<LeaseStore>): LeaseStore {
  return {
    get guarantees() {
      return store.guarantees
    },
    grant: (request) => store.grant(request),
    renew: (leases) => store.renew(leases),
    revoke: (request) => store.revoke(request),
    claim: (request) => store.claim(request),
    release: (request) => store.release(request),
    update: (request) => store.update(request),
    read: (query) => store.read(query),
    watch: (target, observer) => store.watch(target, observer),
    close: () => store.close(),
    ...overrides,
  }
}
