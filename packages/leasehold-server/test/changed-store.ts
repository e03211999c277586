import type { LeaseStore } from 'leasehold/port'

/** The same store, but for some of its methods. */
export function changedStore(store: LeaseStore, changes: Partial<LeaseStore>): LeaseStore {
  return new Proxy(store, {
    get: (target, name) => {
      const value = Reflect.get({ ...changes }, name) ?? Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

/** Something that waits until it is let go. */
export class Gate {
  open!: () => void
  readonly opened = new Promise<void>((resolve) => {
    this.open = resolve
  })
}
