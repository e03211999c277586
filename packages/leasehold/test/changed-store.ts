import type { LeaseStore } from '../src/port/index.ts'

/** The same store, but for some of its methods. */
export function changedStore(store: LeaseStore, changes: Partial<LeaseStore>): LeaseStore {
  return {
    guarantees: store.guarantees,
    grant: (request) => store.grant(request),
    renew: (leases) => store.renew(leases),
    revoke: (request) => store.revoke(request),
    claim: (request) => store.claim(request),
    release: (request) => store.release(request),
    update: (request) => store.update(request),
    read: (query) => store.read(query),
    watch: (target, observer) => store.watch(target, observer),
    close: () => store.close(),
    ...changes,
  }
}

/** The same store, but closing it does nothing: opening one takes longer than most sequences. */
export function leftOpen(store: LeaseStore): LeaseStore {
  return changedStore(store, { close: async () => {} })
}
