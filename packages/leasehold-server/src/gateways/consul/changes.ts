import type { Event, LeaseStore, Notice, Revision, Watch } from 'leasehold/port'
import type { Logger } from 'pino'

/** How many changes are remembered, so that a query with an older index need not return at once. */
const REMEMBERED = 16_384

type Waiter = { readonly prefix: string; readonly exact: boolean; readonly wake: () => void }

/**
 * The changes of all keys with a prefix, from one watch of the store. It wakes blocking queries when
 * their key, or a key with their prefix, changes. Nothing polls.
 */
export class Changes {
  readonly #store: LeaseStore
  readonly #prefix: string
  readonly #log: Logger
  readonly #onEvent: (event: Event) => void
  readonly #waiters = new Set<Waiter>()
  /** The latest change of each key, oldest first. */
  readonly #latest = new Map<string, Revision>()
  /** Changes up to this revision are not known. */
  #unknownThrough: Revision = 0
  #watch: Watch | undefined
  #isOpen = true

  constructor(
    store: LeaseStore,
    prefix: string,
    log: Logger,
    onEvent: (event: Event) => void = () => {},
  ) {
    this.#store = store
    this.#prefix = prefix
    this.#log = log
    this.#onEvent = onEvent
  }

  /** Resolves when changes are seen. */
  open(): Promise<void> {
    return new Promise((resolve) => this.#start(resolve))
  }

  /**
   * The revision of the latest change of this key, or under this prefix. If none is known, the
   * revision up to which changes are not known; never 0.
   */
  latest(prefix: string, exact: boolean): Revision {
    const least = Math.max(this.#unknownThrough, 1)
    if (exact) return this.#latest.get(prefix) ?? least
    let latest = least
    for (const [key, revision] of this.#latest) {
      if (revision > latest && key.startsWith(prefix)) latest = revision
    }
    return latest
  }

  /** Resolves at the next change, when `signal` aborts, or when this closes. */
  next(prefix: string, exact: boolean, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        this.#waiters.delete(waiter)
        signal.removeEventListener('abort', wake)
        resolve()
      }
      const waiter = { prefix, exact, wake }
      this.#waiters.add(waiter)
      signal.addEventListener('abort', wake)
      if (signal.aborted || !this.#isOpen) wake()
    })
  }

  close(): void {
    this.#isOpen = false
    this.#watch?.close()
    for (const { wake } of [...this.#waiters]) wake()
  }

  #start(ready: () => void): void {
    if (!this.#isOpen) {
      ready()
      return
    }
    this.#watch = this.#store.watch({ prefix: this.#prefix }, (notice) =>
      this.#onNotice(notice, ready),
    )
  }

  #onNotice(notice: Notice, ready: () => void): void {
    if (notice.type === 'watching') {
      // What happened before, while nothing was watched, is not known: all queries look again.
      this.#unknownThrough = Math.max(this.#unknownThrough, notice.revision)
      this.#latest.clear()
      for (const { wake } of [...this.#waiters]) wake()
      ready()
    } else if (notice.type === 'events') {
      for (const event of notice.events) this.#note(event)
      for (const { key } of notice.events) this.#wake(key)
    } else if (notice.type === 'compacted' || notice.type === 'interrupted') {
      this.#log.warn({ notice: notice.type }, 'the Consul API watches again')
      this.#start(ready)
    }
  }

  #note(event: Event): void {
    this.#latest.delete(event.key)
    this.#latest.set(event.key, event.revision)
    if (this.#latest.size > REMEMBERED) {
      const [oldest, revision] = this.#latest.entries().next().value!
      this.#latest.delete(oldest)
      this.#unknownThrough = Math.max(this.#unknownThrough, revision)
    }
    this.#onEvent(event)
  }

  #wake(key: string): void {
    for (const waiter of [...this.#waiters]) {
      if (waiter.exact ? waiter.prefix === key : key.startsWith(waiter.prefix)) waiter.wake()
    }
  }
}
