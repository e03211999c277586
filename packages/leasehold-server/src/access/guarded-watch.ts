import {
  isLeaseholdError,
  LeaseholdError,
  type LeaseStore,
  type Observer,
  type Watch,
  type WatchTarget,
} from 'leasehold/port'

/** A watch that can be ended because its watcher lost the right to it. */
export class GuardedWatch implements Watch {
  may: () => LeaseholdError | undefined = () => undefined
  readonly #observer: Observer
  readonly #closed: () => void
  #inner: Watch | undefined = undefined
  #over = false

  constructor(observer: Observer, closed: () => void) {
    this.#observer = observer
    this.#closed = closed
  }

  open(store: LeaseStore, target: WatchTarget): void {
    if (this.#over) return
    this.#inner = store.watch(target, (notice) => {
      if (this.#over) return
      const { type } = notice
      if (type === 'gone' || type === 'compacted' || type === 'interrupted') this.close()
      this.#observer(notice)
    })
  }

  refuse(error: unknown): void {
    if (this.#over) return
    this.close()
    const own = isLeaseholdError(error)
      ? error
      : new LeaseholdError('unknown-outcome', String(error), { cause: error })
    this.#observer({ type: 'interrupted', error: own })
  }

  close(): void {
    if (this.#over) return
    this.#over = true
    this.#inner?.close()
    this.#closed()
  }
}
