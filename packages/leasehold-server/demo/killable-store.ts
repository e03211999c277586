import { delegate, LeaseholdError, type LeaseStore, type Watch } from 'leasehold/port'

/** A store for one agent. After `kill`, no call of the agent reaches the store. */
export interface KillableStore {
  readonly store: LeaseStore
  kill(): void
}

export function killableStore(inner: LeaseStore): KillableStore {
  let isDead = false
  const watches = new Set<Watch>()
  const checked =
    <Args extends unknown[], Answer>(call: (...args: Args) => Promise<Answer>) =>
    (...args: Args): Promise<Answer> =>
      isDead ? Promise.reject(new LeaseholdError('closed', 'this agent is dead')) : call(...args)
  const all = delegate(inner, {})
  return {
    kill: () => {
      isDead = true
      for (const watch of watches) watch.close()
      watches.clear()
    },
    store: delegate(inner, {
      grant: checked(all.grant),
      renew: checked(all.renew),
      revoke: checked(all.revoke),
      claim: checked(all.claim),
      release: checked(all.release),
      update: checked(all.update),
      read: checked(all.read) as LeaseStore['read'],
      watch: (target, observer) => {
        if (isDead) throw new LeaseholdError('closed', 'this agent is dead')
        const watch = inner.watch(target, observer)
        watches.add(watch)
        return {
          close: () => {
            watches.delete(watch)
            watch.close()
          },
        }
      },
      close: async () => {},
    }),
  }
}
