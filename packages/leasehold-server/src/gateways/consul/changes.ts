import type { Event, LeaseStore, Notice, Revision, Watch } from 'leasehold/port'
import type { Logger } from 'pino'

/** How many changes are remembered, so that a query with an older index need not return at once. */
const REMEMBERED = 16_384

/** What a query reads: one key of the lease store, or all with a prefix. */
export interface Watched {
  readonly prefix: string
  readonly exact: boolean
}

type Waiter = { readonly watched: readonly Watched[]; readonly wake: () => void }

/**
 * The changes of all keys with some prefixes, from one watch of the store for each. It wakes blocking
 * queries when their key, or a key with their prefix, changes. Nothing polls.
 */
export class Changes {
  readonly #store: LeaseStore
  readonly #prefixes: readonly string[]
  readonly #log: Logger
  readonly #onEvent: (event: Event) => void
  readonly #waiters = new Set<Waiter>()
  /** The latest change of each key, oldest first. */
  readonly #latest = new Map<string, Revision>()
  /** Changes up to this revision are not known. */
  #unknownThrough: Revision = 0
  readonly #watches = new Map<string, Watch>()
  #isOpen = true

  constructor(
    store: LeaseStore,
    prefixes: readonly string[],
    log: Logger,
    onEvent: (event: Event) => void = () => {},
  ) {
    this.#store = store
    this.#prefixes = prefixes
    this.#log = log
    this.#onEvent = onEvent
  }

  /** Resolves when changes are seen. */
  async open(): Promise<void> {
    await Promise.all(
      this.#prefixes.map((prefix) => new Promise<void>((ready) => this.#start(prefix, ready))),
    )
  }

  /**
   * The revision of the latest change of these keys and prefixes. If none is known, the revision up
   * to which changes are not known; never 0.
   */
  latest(watched: readonly Watched[]): Revision {
    let latest = Math.max(this.#unknownThrough, 1)
    for (const { prefix, exact } of watched) {
      if (exact) latest = Math.max(latest, this.#latest.get(prefix) ?? 0)
      else {
        for (const [key, revision] of this.#latest) {
          if (revision > latest && key.startsWith(prefix)) latest = revision
        }
      }
    }
    return latest
  }

  /** Resolves at the next change, when `signal` aborts, or when this closes. */
  next(watched: readonly Watched[], signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        this.#waiters.delete(waiter)
        signal.removeEventListener('abort', wake)
        resolve()
      }
      const waiter = { watched, wake }
      this.#waiters.add(waiter)
      signal.addEventListener('abort', wake)
      if (signal.aborted || !this.#isOpen) wake()
    })
  }

  close(): void {
    this.#isOpen = false
    for (const watch of this.#watches.values()) watch.close()
    for (const { wake } of [...this.#waiters]) wake()
  }

  #start(prefix: string, ready: () => void): void {
    if (!this.#isOpen) {
      ready()
      return
    }
    const watch = this.#store.watch({ prefix }, (notice) => this.#onNotice(notice, prefix, ready))
    this.#watches.set(prefix, watch)
  }

  #onNotice(notice: Notice, prefix: string, ready: () => void): void {
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
      this.#start(prefix, ready)
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
    for (const { watched, wake } of [...this.#waiters]) {
      if (watched.some(({ prefix, exact }) => (exact ? prefix === key : key.startsWith(prefix))))
        wake()
    }
  }
}
