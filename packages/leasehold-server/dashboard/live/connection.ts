import { type End, type Event, isLeaseholdError, type LeaseStore, type Watch } from 'leasehold/port'
import { remoteStore } from 'leasehold/remote'
import { allowsOthers, parseRight, type Right } from '../../src/access/rights.ts'
import { Mirror } from '../model/mirror.ts'
import { RecentEvents } from '../model/recent-events.ts'
import { StatusHistory } from '../model/recipes/services.ts'
import { api, type Me, Refused } from './api.ts'
import { link } from './browser-socket.ts'
import { FeedClient } from './feed-client.ts'
import { changed } from './frames.ts'
import { loadKeys, loadLeases, watchFrom } from './load-store.ts'
import { VisibleLeases } from './visible-leases.ts'

export type ConnectionStatus =
  | { readonly is: 'connecting' }
  | { readonly is: 'loading'; readonly keys: number }
  | { readonly is: 'live' }
  /** The stream broke at this time of this machine; the page reconnects. */
  | { readonly is: 'lost'; readonly since: number }
  | { readonly is: 'signed-out'; readonly why: string | undefined }
  /** Retrying does not help until somebody changes the rights. */
  | { readonly is: 'refused'; readonly why: string }

const RETRY_MS = 1000

/**
 * The page's connection to its server: reads everything once and then receives every change on the
 * same stream that clients use. It reconnects by itself and shows its status meanwhile.
 */
export class Connection {
  /**
   * The time on the server's clock. It stands still while the server is unreachable, because the page
   * then shows an old state.
   */
  readonly now = (): number =>
    this.#stoppedAt ?? performance.timeOrigin + performance.now() + this.#ahead
  status: ConnectionStatus = { is: 'connecting' }
  /** Whether all keys were read. Before that, a missing key may still exist. */
  isRead = false
  me: Me | undefined
  rights: readonly Right[] = []
  store: LeaseStore | undefined
  mirror = new Mirror()
  recent = new RecentEvents()
  history = new StatusHistory()
  visibleLeases: VisibleLeases
  readonly feed: FeedClient
  readonly #breaks = new Map<string, End>()
  #stoppedAt: number | undefined
  #ahead = 0
  #isAheadKnown = false
  #watches: Watch[] = []
  /** The number of the connection attempt; results of earlier attempts are ignored. */
  #attempt = 0
  #wake: (() => void) | undefined

  constructor() {
    this.visibleLeases = this.#newVisibleLeases()
    this.feed = new FeedClient({
      heartbeat: (lease, at) => this.visibleLeases.heartbeat(lease, at),
      time: (at) => this.#synchronise(at),
      silent: () => link.drop(),
    })
    link.opened = () => {
      if (this.status.is === 'lost') this.#setStatus({ is: 'live' })
    }
    link.closed = () => {
      if (this.status.is === 'live') this.#setStatus({ is: 'lost', since: Date.now() })
    }
    link.refusal = () => this.#refusal()
  }

  async run(): Promise<never> {
    for (;;) {
      const attempt = ++this.#attempt
      const ended = this.#ended()
      try {
        // Signing out also ends an unfinished attempt.
        await Promise.race([this.#connect(attempt), ended])
        await ended
      } catch (error) {
        if (attempt !== this.#attempt) continue
        this.#failed(error)
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
      }
      if (this.status.is === 'signed-out') await this.#ended()
    }
  }

  /** After signing in or out: forgets everything that was shown, and reconnects. */
  again(): void {
    this.#attempt++
    this.#close()
    this.#forget()
    this.#setStatus({ is: 'connecting' })
    this.#wake?.()
  }

  may(verb: Right['verbs'][number], prefix: string): boolean {
    return allowsOthers(this.rights, verb, prefix)
  }

  async #connect(attempt: number): Promise<void> {
    const me = await api.me()
    if (attempt !== this.#attempt) return
    this.me = me
    // Without the right to read all keys there is no feed, which would carry the time.
    this.#synchronise(me.at)
    this.rights = this.me.rights.map(parseRight)
    this.#setStatus({ is: 'connecting' })
    const prefixes = this.#prefixes()
    if (prefixes.length === 0) {
      throw new Refused(
        403,
        `"${this.me.name}" has no keys to read and watch: 'read,watch:' is needed`,
      )
    }
    const store = await remoteStore(location.origin, { timeout: 10_000 })
    if (attempt !== this.#attempt) {
      void store.close().catch(() => {})
      return
    }
    this.store = store
    await this.#load(store, prefixes)
    if (attempt !== this.#attempt) return
    if (this.may('read', '')) this.feed.open()
    else this.feed.forget()
  }

  #forget(): void {
    this.isRead = false
    this.me = undefined
    this.rights = []
    this.feed.forget()
    this.#breaks.clear()
    this.mirror = new Mirror()
    this.recent = new RecentEvents()
    this.history = new StatusHistory()
    this.visibleLeases = this.#newVisibleLeases()
  }

  async #load(store: LeaseStore, prefixes: readonly string[]): Promise<void> {
    for (const watch of this.#watches) watch.close()
    this.#watches = []
    const isFirst = this.mirror.keys.size === 0
    const mirror = new Mirror()
    const recent = new RecentEvents()
    const history = new StatusHistory()
    // The old state stays visible until everything is read again.
    if (isFirst) this.#show(mirror, recent, history, store)
    const progress = () => {
      if (isFirst && this.store === store)
        this.#setStatus({ is: 'loading', keys: mirror.keys.size })
    }
    const from = new Map<string, number>()
    for (const prefix of prefixes) from.set(prefix, await loadKeys(store, prefix, mirror, progress))
    // Another user or another stream may have replaced this one.
    if (this.store !== store) return
    this.#show(mirror, recent, history, store)
    for (const [prefix, read] of from) this.#watch(store, prefix, read, prefixes)
    this.isRead = true
    this.#setStatus({ is: 'live' })
    // Leases with claims are already known; the others may come later.
    if (this.may('read', '')) void loadLeases(store, mirror, changed).catch(() => {})
  }

  #watch(store: LeaseStore, prefix: string, read: number, prefixes: readonly string[]): void {
    const { mirror, recent, history } = this
    const before = (event: Event) => {
      recent.add(event)
      history.add(event)
    }
    const watch = watchFrom(store, prefix, read, {
      before,
      now: (event) => {
        mirror.apply(event)
        before(event)
      },
      received: changed,
      missed: () => void this.#load(store, prefixes).catch((error) => this.#lose(error)),
      broken: (error) => this.#lose(error),
    })
    this.#watches.push(watch)
  }

  #show(mirror: Mirror, recent: RecentEvents, history: StatusHistory, store: LeaseStore): void {
    if (this.mirror !== mirror) {
      this.mirror = mirror
      this.recent = recent
      this.history = history
      this.visibleLeases = this.#newVisibleLeases()
    }
    this.visibleLeases.open(store)
    changed()
  }

  #newVisibleLeases(): VisibleLeases {
    const visibleLeases = new VisibleLeases(this.mirror, this.now, this.#breaks)
    visibleLeases.follow = (leases) => this.feed.follow(leases)
    visibleLeases.setOffline(this.#stoppedAt !== undefined)
    return visibleLeases
  }

  /** The prefixes that the user may both read and watch, without nested ones. */
  #prefixes(): string[] {
    if (this.may('read', '') && this.may('watch', '')) return ['']
    const own = [...new Set(this.rights.map(({ prefix }) => prefix))].filter(
      (prefix) => this.may('read', prefix) && this.may('watch', prefix),
    )
    return own.filter((prefix) => !own.some((it) => it !== prefix && prefix.startsWith(it)))
  }

  #ended(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  #lose(error: unknown): void {
    if (isLeaseholdError(error, 'closed')) return
    this.#failed(error)
    this.#wake?.()
  }

  #failed(error: unknown): void {
    this.#close()
    if (error instanceof Refused && error.status === 403) {
      this.#setStatus({ is: 'refused', why: error.message })
    } else if (isSignedOut(error)) {
      const why = this.me === undefined ? undefined : error.message
      this.#setStatus({ is: 'signed-out', why })
    } else if (this.status.is !== 'lost') this.#setStatus({ is: 'lost', since: Date.now() })
  }

  #close(): void {
    this.feed.close()
    for (const watch of this.#watches) watch.close()
    this.#watches = []
    void this.store?.close().catch(() => {})
    this.store = undefined
  }

  /** Asks the server why it may have refused the stream. */
  async #refusal(): Promise<string | undefined> {
    try {
      await api.me()
      return undefined
    } catch (error) {
      return error instanceof Refused && error.status === 401 ? error.message : undefined
    }
  }

  /** Updates the offset to the server's clock. The message took some time, so it is a lower bound. */
  #synchronise(at: number): void {
    const ahead = at - (performance.timeOrigin + performance.now())
    const difference = ahead - this.#ahead
    if (this.#isAheadKnown && difference < 0 && difference > -1000) return
    this.#ahead = ahead
    this.#isAheadKnown = true
  }

  #setStatus(status: ConnectionStatus): void {
    this.status = status
    // The old state stays visible until a new stream delivers the current one.
    if (status.is === 'lost') this.#stoppedAt ??= this.now()
    else if (status.is !== 'connecting') this.#stoppedAt = undefined
    this.visibleLeases.setOffline(this.#stoppedAt !== undefined)
    changed()
  }
}

function isSignedOut(error: unknown): error is Error {
  if (error instanceof Refused) return error.status === 401
  return isLeaseholdError(error, 'unauthenticated')
}
