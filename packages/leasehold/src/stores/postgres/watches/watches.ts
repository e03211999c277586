import {
  type Clock,
  LeaseholdError,
  type LeaseId,
  type Observer,
  type Revision,
  type Timer,
  type Watch,
} from '../../../port/index.ts'
import { numberOf } from '../calls/answers.ts'
import type { Database } from '../database.ts'
import type { Sweeper } from '../sweeper.ts'
import { type LeaseReport, LeaseWatcher, type PrefixReport, PrefixWatcher } from './watch.ts'

/** The maximum of one statement: watches, and events of a prefix. */
const LEASES_AT_ONCE = 1000
const PREFIXES_AT_ONCE = 100
const EVENTS_AT_ONCE = 1000
/** How long the database remembers that prefixes are watched. Renewed after half of that time. */
const WATCH_ON_MS = 60_000
/** How often to poll while nothing can be pushed, and after a failed query. */
const UNPUSHED_MS = 250

export interface WatchesOptions {
  readonly database: Database
  readonly sweeper: Sweeper
  readonly clock: Clock
  readonly poll: number
  readonly timeout: number
  /** Whether notifications arrive; `undefined` if they are never used. */
  readonly isPushed: (() => boolean) | undefined
}

type Reports = readonly [
  remaining: number | string,
  sweeper: string | null,
  revision: Revision,
  leases: readonly LeaseReport[],
  prefixes: readonly PrefixReport[],
]

/**
 * The watches. They get the changes since their last report, whatever the reason to ask: a
 * notification, the poll, or a new connection. One statement asks for all that may have changed.
 */
export class Watches {
  readonly #options: WatchesOptions
  readonly #byLease = new Map<number, Set<LeaseWatcher>>()
  readonly #prefixes = new Set<PrefixWatcher>()
  #askLeases = new Set<LeaseWatcher>()
  #askPrefixes = new Set<PrefixWatcher>()
  #asking = false
  /** Fulfilled when the newly watched prefixes are registered, or could not be. */
  #starting: Promise<void> | undefined
  #started: (() => void) | undefined
  #watchedUntil = 0
  /** Since when the database has not answered. */
  #silentSince: number | undefined
  #timer: Timer | undefined
  #closed = false

  constructor(options: WatchesOptions) {
    this.#options = options
  }

  /** Begins to poll. */
  start(): void {
    this.#pollLater()
  }

  watchLease(lease: LeaseId, observer: Observer): Watch {
    const number = numberOf(lease)
    const watchers = this.#byLease.get(number) ?? new Set()
    const watcher = new LeaseWatcher(number, observer, () => {
      watchers.delete(watcher)
      if (watchers.size === 0 && this.#byLease.get(number) === watchers) {
        this.#byLease.delete(number)
      }
    })
    this.#byLease.set(number, watchers.add(watcher))
    this.#askLeases.add(watcher)
    this.#ask()
    return watcher
  }

  watchPrefix(prefix: string, from: Revision | undefined, observer: Observer): Watch {
    const watcher = new PrefixWatcher(prefix, from ?? null, observer, () => {
      this.#prefixes.delete(watcher)
    })
    this.#prefixes.add(watcher)
    this.#askPrefixes.add(watcher)
    if (from === undefined && !this.#closed) {
      this.#starting ??= new Promise((resolve) => {
        this.#started = resolve
      })
    }
    this.#ask()
    return watcher
  }

  /**
   * What to wait for before anything is changed here: a watch must report everything that is changed
   * after it was opened, and only the database can say when that is.
   */
  get starting(): Promise<void> | undefined {
    return this.#starting
  }

  /** Something happened to these leases. */
  leasesChanged(leases: readonly number[]): void {
    for (const lease of leases) {
      for (const watcher of this.#byLease.get(lease) ?? []) this.#askLeases.add(watcher)
    }
    if (this.#askLeases.size > 0) this.#ask()
  }

  /** There are events. */
  eventsAdded(): void {
    for (const watcher of this.#prefixes) this.#askPrefixes.add(watcher)
    if (this.#askPrefixes.size > 0) this.#ask()
  }

  /** Anything may have happened. */
  everything(): void {
    for (const watchers of this.#byLease.values()) {
      for (const watcher of watchers) this.#askLeases.add(watcher)
    }
    for (const watcher of this.#prefixes) this.#askPrefixes.add(watcher)
    this.#ask()
  }

  close(error: LeaseholdError): void {
    this.#closed = true
    this.#timer?.cancel()
    this.#begun()
    this.#interrupt(error)
  }

  /** A waiter polls again: without an end it would poll forever, and nothing else would be done. */
  #begun(): void {
    this.#started?.()
    this.#starting = undefined
  }

  #pollLater(): void {
    const { clock, poll, isPushed } = this.#options
    const unpushed = isPushed !== undefined && !isPushed()
    const wait = Math.min(poll, unpushed ? UNPUSHED_MS : WATCH_ON_MS / 4)
    this.#timer?.cancel()
    this.#timer = clock.timer(clock.now() + wait, () => {
      this.everything()
      this.#pollLater()
    })
  }

  #ask(): void {
    if (this.#asking || this.#closed) return
    this.#asking = true
    this.#options.clock.defer(() => void this.#askAll())
  }

  async #askAll(): Promise<void> {
    try {
      do await this.#askSome()
      while (!this.#closed && this.#askLeases.size + this.#askPrefixes.size > 0)
      this.#silentSince = undefined
    } catch (error) {
      this.#failed(error as LeaseholdError)
    }
    this.#begun()
    this.#asking = false
    if (this.#askLeases.size + this.#askPrefixes.size > 0) this.#askAgain()
  }

  async #askSome(): Promise<void> {
    const { database, sweeper } = this.#options
    const leases = take(this.#askLeases, LEASES_AT_ONCE)
    const prefixes = take(this.#askPrefixes, PREFIXES_AT_ONCE)
    try {
      if (prefixes.length > 0) await this.#watchOn()
      const [remaining, name, revision, leaseReports, prefixReports] = await database.ask<Reports>(
        'news($1::text::jsonb, $2::text::jsonb, $3::text::bigint)',
        [
          JSON.stringify(leases.map(({ lease, since }) => [lease, since])),
          JSON.stringify(prefixes.map(({ prefix, since }) => [prefix, since])),
          EVENTS_AT_ONCE,
        ],
      )
      sweeper.receive(Number(remaining), name)
      for (const [at, watcher] of leases.entries()) {
        watcher.receive(leaseReports[at]!, revision)
      }
      for (const [at, watcher] of prefixes.entries()) {
        if (watcher.receive(prefixReports[at]!, revision)) this.#askPrefixes.add(watcher)
      }
      // Not only when nothing new is left, which may never be.
      if (![...this.#askPrefixes].some(({ since }) => since === null)) this.#begun()
    } catch (error) {
      for (const watcher of leases) if (watcher.isOpen) this.#askLeases.add(watcher)
      for (const watcher of prefixes) if (watcher.isOpen) this.#askPrefixes.add(watcher)
      throw error
    }
  }

  /** Before the first query of a prefix: later changes must be notified. */
  async #watchOn(): Promise<void> {
    const { database, clock, isPushed } = this.#options
    if (isPushed === undefined || clock.now() < this.#watchedUntil) return
    const until = clock.now() + WATCH_ON_MS / 2
    await database.ask('watch_on($1::text::float8)', [WATCH_ON_MS])
    this.#watchedUntil = until
  }

  #failed(error: LeaseholdError): void {
    const { clock, timeout } = this.#options
    this.#silentSince ??= clock.now()
    if (clock.now() - this.#silentSince < timeout) return
    this.#silentSince = undefined
    this.#interrupt(broken(error))
  }

  #askAgain(): void {
    const { clock } = this.#options
    clock.timer(clock.now() + UNPUSHED_MS, () => this.#ask())
  }

  #interrupt(error: LeaseholdError): void {
    const leases = [...this.#byLease.values()].flatMap((watchers) => [...watchers])
    this.#askLeases.clear()
    this.#askPrefixes.clear()
    for (const watcher of [...leases, ...this.#prefixes]) watcher.notify(interrupted(error))
  }
}

function take<W extends { readonly isOpen: boolean }>(from: Set<W>, most: number): W[] {
  const taken: W[] = []
  for (const watcher of from) {
    if (taken.length === most) break
    from.delete(watcher)
    if (watcher.isOpen) taken.push(watcher)
  }
  return taken
}

function interrupted(error: LeaseholdError) {
  return { type: 'interrupted', error } as const
}

function broken(cause: LeaseholdError): LeaseholdError {
  const message = `the database does not answer (${cause.message}): open a new watch`
  return new LeaseholdError('unknown-outcome', message, { cause })
}
