import { type End, type Event, isLeaseholdError, type LeaseStore, type Watch } from 'leasehold/port'
import { remoteStore } from 'leasehold/remote'
import { allowsOthers, parseRight, type Right } from '../../src/access/rights.ts'
import { Mirror } from '../model/mirror.ts'
import { Recent } from '../model/recent.ts'
import { StatusHistory } from '../model/services.ts'
import { api, type Me, Refusal } from './api.ts'
import { link } from './browser-socket.ts'
import { FeedClient } from './feed-client.ts'
import { changed } from './frames.ts'
import { LeaseBook } from './lease-book.ts'
import { loadKeys, loadLeases, watchFrom } from './loading.ts'

export type Standing =
  | { readonly is: 'connecting' }
  | { readonly is: 'loading'; readonly keys: number }
  | { readonly is: 'live' }
  /** The stream is broken since a time of this machine; another is being tried. */
  | { readonly is: 'lost'; readonly since: number }
  | { readonly is: 'signed-out'; readonly why: string | undefined }
  /** Looking again will not help until somebody has changed something. */
  | { readonly is: 'refused'; readonly why: string }

const RETRY_MS = 1000

/**
 * The page's line to its server: reads everything once, and is told of every change from then on by
 * the same stream that clients use. It comes back by itself, and says meanwhile that it is away.
 */
export class Connection {
  /**
   * The time on the store's clock, as far as the server's own tells it. It stands still while the
   * server is away: what is shown is as it was then, and nothing of it may seem to go on.
   */
  readonly now = (): number =>
    this.#stoppedAt ?? performance.timeOrigin + performance.now() + this.#ahead
  standing: Standing = { is: 'connecting' }
  /** All keys were read: what is not there is nowhere. */
  isRead = false
  me: Me | undefined
  rights: readonly Right[] = []
  store: LeaseStore | undefined
  mirror = new Mirror()
  recent = new Recent()
  history = new StatusHistory()
  book: LeaseBook
  readonly feed: FeedClient
  readonly #cuts = new Map<string, End>()
  #stoppedAt: number | undefined
  #ahead = 0
  #isAheadKnown = false
  #watches: Watch[] = []
  /** Counts the tries to connect: what an earlier one has begun counts for nothing any more. */
  #turn = 0
  #wake: (() => void) | undefined

  constructor() {
    this.book = this.#newBook()
    this.feed = new FeedClient({
      beat: (lease, at) => this.book.beat(lease, at),
      time: (at) => this.#synchronise(at),
      silent: () => link.drop(),
    })
    link.opened = () => {
      if (this.standing.is === 'lost') this.#stand({ is: 'live' })
    }
    link.closed = () => {
      if (this.standing.is === 'live') this.#stand({ is: 'lost', since: Date.now() })
    }
    link.refusal = () => this.#refusal()
  }

  async run(): Promise<never> {
    for (;;) {
      const turn = ++this.#turn
      const ended = this.#ended()
      try {
        // Also what still reads ends when somebody signs out.
        await Promise.race([this.#connect(turn), ended])
        await ended
      } catch (error) {
        if (turn !== this.#turn) continue
        this.#failed(error)
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
      }
      if (this.standing.is === 'signed-out') await this.#ended()
    }
  }

  /** Somebody has signed in or out: nothing stays of what another was shown, and all is asked anew. */
  again(): void {
    this.#turn++
    this.#close()
    this.#forget()
    this.#stand({ is: 'connecting' })
    this.#wake?.()
  }

  may(verb: Right['verbs'][number], prefix: string): boolean {
    return allowsOthers(this.rights, verb, prefix)
  }

  async #connect(turn: number): Promise<void> {
    const me = await api.me()
    if (turn !== this.#turn) return
    this.me = me
    // Who may not read everything has no feed that would tell the time.
    this.#synchronise(me.at)
    this.rights = this.me.rights.map(parseRight)
    this.#stand({ is: 'connecting' })
    const prefixes = this.#prefixes()
    if (prefixes.length === 0) {
      throw new Refusal(403, `"${this.me.name}" may read and watch nothing: ask for 'read,watch:'`)
    }
    const store = await remoteStore(location.origin, { timeout: 10_000 })
    if (turn !== this.#turn) {
      void store.close().catch(() => {})
      return
    }
    this.store = store
    await this.#load(store, prefixes)
    if (turn !== this.#turn) return
    if (this.may('read', '')) this.feed.open()
    else this.feed.forget()
  }

  #forget(): void {
    this.isRead = false
    this.me = undefined
    this.rights = []
    this.feed.forget()
    this.#cuts.clear()
    this.mirror = new Mirror()
    this.recent = new Recent()
    this.history = new StatusHistory()
    this.book = this.#newBook()
  }

  async #load(store: LeaseStore, prefixes: readonly string[]): Promise<void> {
    for (const watch of this.#watches) watch.close()
    this.#watches = []
    const isFirst = this.mirror.keys.size === 0
    const mirror = new Mirror()
    const recent = new Recent()
    const history = new StatusHistory()
    // What was seen goes on to be shown until all is read again.
    if (isFirst) this.#show(mirror, recent, history, store)
    const progress = () => {
      if (isFirst && this.store === store) this.#stand({ is: 'loading', keys: mirror.keys.size })
    }
    const from = new Map<string, number>()
    for (const prefix of prefixes) from.set(prefix, await loadKeys(store, prefix, mirror, progress))
    // Somebody else may look by now, or by another stream.
    if (this.store !== store) return
    this.#show(mirror, recent, history, store)
    for (const [prefix, read] of from) this.#watch(store, prefix, read, prefixes)
    this.isRead = true
    this.#stand({ is: 'live' })
    // What holds something is known by now; the rest of what there is of leases may come later.
    if (this.may('read', '')) void loadLeases(store, mirror, changed).catch(() => {})
  }

  #watch(store: LeaseStore, prefix: string, read: number, prefixes: readonly string[]): void {
    const { mirror, recent, history } = this
    const before = (event: Event) => {
      recent.hear(event)
      history.hear(event)
    }
    const watch = watchFrom(store, prefix, read, {
      before,
      now: (event) => {
        mirror.apply(event)
        before(event)
      },
      told: changed,
      missed: () => void this.#load(store, prefixes).catch((error) => this.#lose(error)),
      broken: (error) => this.#lose(error),
    })
    this.#watches.push(watch)
  }

  #show(mirror: Mirror, recent: Recent, history: StatusHistory, store: LeaseStore): void {
    if (this.mirror !== mirror) {
      this.mirror = mirror
      this.recent = recent
      this.history = history
      this.book = this.#newBook()
    }
    this.book.open(store)
    changed()
  }

  #newBook(): LeaseBook {
    const book = new LeaseBook(this.mirror, this.now, this.#cuts)
    book.follow = (leases) => this.feed.follow(leases)
    book.away(this.#stoppedAt !== undefined)
    return book
  }

  /** The prefixes that this one may both read and watch, none below another. */
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
    if (error instanceof Refusal && error.status === 403) {
      this.#stand({ is: 'refused', why: error.message })
    } else if (isSignedOut(error)) {
      const why = this.me === undefined ? undefined : error.message
      this.#stand({ is: 'signed-out', why })
    } else if (this.standing.is !== 'lost') this.#stand({ is: 'lost', since: Date.now() })
  }

  #close(): void {
    this.feed.close()
    for (const watch of this.#watches) watch.close()
    this.#watches = []
    void this.store?.close().catch(() => {})
    this.store = undefined
  }

  /** Why the stream may have been turned away, where the server says so on being asked. */
  async #refusal(): Promise<string | undefined> {
    try {
      await api.me()
      return undefined
    } catch (error) {
      return error instanceof Refusal && error.status === 401 ? error.message : undefined
    }
  }

  /** The server's clock is at least this far ahead: what was told was on its way for a while. */
  #synchronise(at: number): void {
    const ahead = at - (performance.timeOrigin + performance.now())
    const difference = ahead - this.#ahead
    if (this.#isAheadKnown && difference < 0 && difference > -1000) return
    this.#ahead = ahead
    this.#isAheadKnown = true
  }

  #stand(standing: Standing): void {
    this.standing = standing
    // What was shown before is shown until another stream tells how things are.
    if (standing.is === 'lost') this.#stoppedAt ??= this.now()
    else if (standing.is !== 'connecting') this.#stoppedAt = undefined
    this.book.away(this.#stoppedAt !== undefined)
    changed()
  }
}

function isSignedOut(error: unknown): error is Error {
  if (error instanceof Refusal) return error.status === 401
  return isLeaseholdError(error, 'unauthenticated')
}
