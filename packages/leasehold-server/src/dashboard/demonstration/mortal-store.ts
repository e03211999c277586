import { LeaseholdError, type LeaseStore, type Watch } from 'leasehold/port'

/** The store as one agent has it, until it dies: nothing it does arrives any more after that. */
export interface MortalStore {
  readonly store: LeaseStore
  die(): void
}

export function mortal(store: LeaseStore): MortalStore {
  let isDead = false
  const watches = new Set<Watch>()
  const alive = <Answer>(call: () => Promise<Answer>): Promise<Answer> =>
    isDead ? Promise.reject(new LeaseholdError('closed', 'this agent is dead')) : call()
  return {
    die: () => {
      isDead = true
      for (const watch of watches) watch.close()
      watches.clear()
    },
    store: {
      guarantees: store.guarantees,
      grant: (request) => alive(() => store.grant(request)),
      renew: (leases) => alive(() => store.renew(leases)),
      revoke: (request) => alive(() => store.revoke(request)),
      claim: (request) => alive(() => store.claim(request)),
      release: (request) => alive(() => store.release(request)),
      update: (request) => alive(() => store.update(request)),
      read: (query) => alive(() => store.read(query)),
      watch: (target, observer) => {
        if (isDead) throw new LeaseholdError('closed', 'this agent is dead')
        const watch = store.watch(target, observer)
        watches.add(watch)
        return {
          close: () => {
            watches.delete(watch)
            watch.close()
          },
        }
      },
      close: async () => {},
    },
  }
}
