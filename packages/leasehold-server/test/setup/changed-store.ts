import type { LeaseStore } from 'leasehold/port'

/**
 * The same store, with some of its methods replaced. Unlike `delegate`, a test may change them later,
 * and `this` in them is the original store.
 */
export function changedStore(store: LeaseStore, changes: Partial<LeaseStore>): LeaseStore {
  return new Proxy(store, {
    get: (target, name) => {
      const value = Reflect.get({ ...changes }, name) ?? Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

/** A wait that ends when the test opens it. */
export class Gate {
  open!: () => void
  readonly opened = new Promise<void>((resolve) => {
    this.open = resolve
  })
}
