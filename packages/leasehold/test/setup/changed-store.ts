import { delegate, type LeaseStore } from '../../src/port/index.ts'

/** The same store, with some of its methods replaced. */
export const changedStore = delegate

/** The same store, but closing it does nothing: opening one takes longer than most sequences. */
export function leftOpen(store: LeaseStore): LeaseStore {
  return changedStore(store, { close: async () => {} })
}
