import {
  isLeaseholdError,
  LeaseholdError,
  type LeaseStore,
  type Notice,
  type Observer,
  type Watch,
  type WatchTarget,
} from 'leasehold/port'

/** The visible part of a notice, if any; a promise if the store must be asked. */
export type Shown = Notice | undefined | Promise<Notice | undefined>

/** A watch that ends if its principal loses the right to it. */
export class GuardedWatch implements Watch {
  may: () => LeaseholdError | undefined = () => undefined
  show: (notice: Notice) => Shown = (notice) => notice
  readonly #observer: Observer
  readonly #closed: () => void
  #inner: Watch | undefined = undefined
  #over = false
  /** Resolves when all earlier notices were delivered; `undefined` if none is pending. */
  #before: Promise<void> | undefined = undefined

  constructor(observer: Observer, closed: () => void) {
    this.#observer = observer
    this.#closed = closed
  }

  open(store: LeaseStore, target: WatchTarget): void {
    if (this.#over) return
    this.#inner = store.watch(target, (notice) => {
      if (this.#before === undefined) this.#pass(this.show(notice))
      else this.#queue(this.#before.then(() => this.show(notice)))
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

  #pass(shown: Shown): void {
    if (shown instanceof Promise) this.#queue(shown)
    else if (shown !== undefined) this.#deliver(shown)
  }

  /** Notices keep their order: later ones wait for this one. */
  #queue(shown: Promise<Notice | undefined>): void {
    const passed: Promise<void> = shown
      .then((notice) => notice && this.#deliver(notice))
      .catch((error) => this.refuse(error))
      .finally(() => {
        if (this.#before === passed) this.#before = undefined
      })
    this.#before = passed
  }

  #deliver(notice: Notice): void {
    if (this.#over) return
    const { type } = notice
    if (type === 'gone' || type === 'compacted' || type === 'interrupted') this.close()
    this.#observer(notice)
  }
}
