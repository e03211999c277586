import {
  type Clock,
  type Event,
  isLeaseholdError,
  type LeaseStore,
  type Notice,
  type Revision,
  type Watch,
} from 'leasehold/port'
import type { Logger } from 'pino'

/** How many changes are remembered, so that a query with an older index need not return at once. */
const REMEMBERED = 16_384
/** How long to wait before a watch that the store ended is opened again. */
const REOPEN_MS = 250

/** What a query reads: one key of the lease store, or all with a prefix. */
export interface Watched {
  readonly prefix: string
  readonly exact: boolean
}

export interface ChangesOptions {
  readonly store: LeaseStore
  readonly prefixes: readonly string[]
  readonly clock: Clock
  readonly log: Logger
  readonly onEvent?: (event: Event) => void
  /** A watch was interrupted and is open again. Events in between were missed. */
  readonly onMissed?: () => void
}

type Wake = () => void

/**
 * The changes of all keys with some prefixes, from one watch of the store for each. It wakes blocking
 * queries when their key, or a key with their prefix, changes. Nothing polls.
 */
export class Changes {
  readonly #options: ChangesOptions
  readonly #byKey = new Map<string, Set<Wake>>()
  readonly #byPrefix = new Map<string, Set<Wake>>()
  /** The latest change of each key, oldest first. */
  readonly #latest = new Map<string, Revision>()
  /** Changes up to this revision are not known. */
  #unknownThrough: Revision = 0
  #seen: Revision = 0
  readonly #watches = new Map<string, Watch>()
  #isOpen = true

  constructor(options: ChangesOptions) {
    this.#options = options
  }

  /** Resolves when changes are seen. */
  async open(): Promise<void> {
    const { prefixes } = this.#options
    await Promise.all(
      prefixes.map((prefix) => new Promise<void>((ready) => this.#start(prefix, ready))),
    )
  }

  /** The latest revision that was seen. */
  get seen(): Revision {
    return this.#seen
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
    if (signal.aborted || !this.#isOpen) return Promise.resolve()
    return new Promise((resolve) => {
      const wake = () => {
        for (const { prefix, exact } of watched) {
          removeFrom(exact ? this.#byKey : this.#byPrefix, prefix, wake)
        }
        signal.removeEventListener('abort', wake)
        resolve()
      }
      for (const { prefix, exact } of watched) {
        addTo(exact ? this.#byKey : this.#byPrefix, prefix, wake)
      }
      signal.addEventListener('abort', wake)
    })
  }

  close(): void {
    this.#isOpen = false
    for (const watch of this.#watches.values()) watch.close()
    this.#wakeAll()
  }

  #start(prefix: string, ready: () => void, isAgain = false): void {
    if (!this.#isOpen) {
      ready()
      return
    }
    const { store } = this.#options
    const onNotice = (notice: Notice) => this.#onNotice(notice, prefix, ready, isAgain)
    this.#watches.set(prefix, store.watch({ prefix }, onNotice))
  }

  #startAgain(prefix: string, ready: () => void): void {
    try {
      this.#start(prefix, ready, true)
    } catch (error) {
      if (!isLeaseholdError(error, 'closed')) throw error
    }
  }

  #onNotice(notice: Notice, prefix: string, ready: () => void, isAgain: boolean): void {
    const { clock, log, onMissed } = this.#options
    if ('revision' in notice) this.#seen = Math.max(this.#seen, notice.revision)
    if (notice.type === 'watching') {
      // What happened before, while nothing was watched, is not known: all queries look again.
      const known = Math.max(this.#unknownThrough, ...this.#latest.values())
      this.#unknownThrough = Math.max(known, notice.revision)
      this.#latest.clear()
      this.#wakeAll()
      ready()
      if (isAgain) onMissed?.()
    } else if (notice.type === 'events') {
      for (const event of notice.events) this.#note(event)
      for (const key of new Set(notice.events.map((event) => event.key))) this.#wake(key)
    } else if (notice.type === 'compacted' || notice.type === 'interrupted') {
      if (notice.type === 'interrupted' && isLeaseholdError(notice.error, 'closed')) return
      log.warn({ notice: notice.type }, 'the Consul API watches again')
      clock.timer(clock.now() + REOPEN_MS, () => this.#startAgain(prefix, ready))
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
    this.#options.onEvent?.(event)
  }

  #wake(key: string): void {
    for (const wake of [...(this.#byKey.get(key) ?? [])]) wake()
    for (const [prefix, wakes] of [...this.#byPrefix]) {
      if (key.startsWith(prefix)) for (const wake of [...wakes]) wake()
    }
  }

  #wakeAll(): void {
    for (const all of [this.#byKey, this.#byPrefix]) {
      for (const wakes of [...all.values()]) for (const wake of [...wakes]) wake()
    }
  }
}

function addTo(all: Map<string, Set<Wake>>, name: string, wake: Wake): void {
  const wakes = all.get(name)
  if (wakes) wakes.add(wake)
  else all.set(name, new Set([wake]))
}

function removeFrom(all: Map<string, Set<Wake>>, name: string, wake: Wake): void {
  const wakes = all.get(name)
  wakes?.delete(wake)
  if (wakes?.size === 0) all.delete(name)
}
