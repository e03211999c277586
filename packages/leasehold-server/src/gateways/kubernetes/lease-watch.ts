import type { ServerResponse } from 'node:http'
import type { Clock, Key, LeaseStore, Notice, Revision, Timer, Watch } from 'leasehold/port'
import { type LeaseObject, leaseObject } from './lease-object.ts'
import { type LeasePage, type LeaseQuery, leasePages } from './lease-queries.ts'
import { type Change, changesOf, type LeaseStorage } from './lease-storage.ts'
import { VERSION as API_VERSION, expired, statusOf } from './status.ts'

export interface LeaseWatchOptions {
  readonly clock: Clock
  readonly store: LeaseStore
  readonly storage: LeaseStorage
  readonly query: LeaseQuery
  /** How the client wants to see objects. */
  readonly show: (object: LeaseObject) => unknown
  readonly response: ServerResponse
}

const BOOKMARK_MS = 60_000
/** A client with this many unread bytes of changes is disconnected. It can resume. */
const UNREAD_MAX = 4 << 20
/** How many objects are read at a time, and sent before the next ones are read. */
const PAGE = 50
/** A client that does not read the end of its watch is disconnected after so long. */
const END_MS = 10_000
const INITIAL_END = { 'k8s.io/initial-events-end': 'true' }

/** What a page of the first objects showed: the keys up to `last`, at this revision. */
interface ShownPage {
  readonly last: Key | undefined
  readonly readAt: Revision
}

/**
 * The changes of objects as a stream of lines of JSON. Without a version to begin from, the objects
 * come first, as fast as the client reads them.
 */
export class LeaseWatch {
  readonly #options: LeaseWatchOptions
  readonly #timers: Timer[] = []
  readonly #shown: ShownPage[] = []
  #watch: Watch | undefined
  /** Called when the client reads again, or has left. */
  #resume: () => void = () => {}
  #revision: Revision = 0
  #marked: Revision = 0

  constructor(options: LeaseWatchOptions) {
    this.#options = options
  }

  /**
   * Writes until the time is over, the client has left, or the watch of the store has ended. Throws,
   * and has written nothing, if the client may not watch.
   */
  async start(): Promise<void> {
    const { storage, query, response } = this.#options
    response.once('close', () => this.#stop())
    response.on('drain', () => this.#resume())
    if (query.from !== undefined) {
      this.#follow(query.from)
      this.#writeHead()
      return
    }
    const pages = leasePages(storage, { ...query, limit: PAGE, next: undefined })
    const { value: first } = await pages.next()
    // It may be refused, which must be known before the first line.
    this.#follow(first!.readAt)
    this.#watch?.close()
    this.#writeHead()
    this.#showThenFollow(first!, pages).catch((error: unknown) => this.fail(error))
  }

  end(): void {
    this.#stop()
    const { clock, response } = this.#options
    if (response.destroyed) return
    response.end()
    this.#timers.push(clock.timer(clock.now() + END_MS, () => response.destroy()))
  }

  /** Ends the watch with the reason. The client lists again, or connects again. */
  fail(error: unknown): void {
    if (!this.#isOver) this.#write({ type: 'ERROR', object: statusOf(error) })
    this.end()
  }

  get #isOver(): boolean {
    const { response } = this.#options
    return response.writableEnded || response.destroyed
  }

  #writeHead(): void {
    const { clock, response, query } = this.#options
    if (this.#isOver) return
    response.writeHead(200, {
      'content-type': 'application/json',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    })
    response.flushHeaders()
    this.#timers.push(clock.timer(clock.now() + query.timeout, () => this.end()))
    if (query.bookmarks) this.#bookmarkLater()
  }

  /** The store keeps what changes meanwhile. If it does not keep enough, the client begins again. */
  async #showThenFollow(first: LeasePage, rest: AsyncIterable<LeasePage>): Promise<void> {
    await this.#showPage(first)
    for await (const page of rest) {
      if (this.#isOver) return
      await this.#showPage(page)
    }
    if (this.#isOver) return
    if (this.#options.query.marksInitial) this.#bookmark(INITIAL_END)
    this.#follow(first.readAt)
  }

  async #showPage({ versions, readAt, next }: LeasePage): Promise<void> {
    this.#shown.push({ last: next, readAt })
    let takesMore = true
    for (const { stored, token } of versions) {
      takesMore = this.#send('ADDED', leaseObject(stored, token))
    }
    if (takesMore || this.#isOver) return
    await new Promise<void>((resolve) => {
      this.#resume = resolve
    })
  }

  #follow(from: Revision): void {
    const { store, query } = this.#options
    if (this.#isOver) return
    this.#revision = from
    this.#marked = from
    const prefix = query.key ?? query.prefix
    this.#watch = store.watch({ prefix, from }, (notice) => this.#on(notice))
  }

  #stop(): void {
    this.#watch?.close()
    for (const timer of this.#timers.splice(0)) timer.cancel()
    this.#resume()
  }

  #on(notice: Notice): void {
    if (notice.type === 'compacted') this.fail(expired())
    else if (notice.type === 'interrupted') this.fail(notice.error)
    else if (notice.type === 'events') {
      for (const change of changesOf(notice.events)) this.#report(change)
      this.#revision = Math.max(this.#revision, notice.revision)
    }
  }

  /** An object that is no longer selected is deleted for this client. */
  #report({ key, revision, before, after }: Change): void {
    if (this.#wasShown(key, revision)) return
    const { response, query } = this.#options
    const was = before !== undefined && query.selector(before.metadata)
    const is = after !== undefined && query.selector(after.metadata)
    if (is) this.#send(was ? 'MODIFIED' : 'ADDED', after)
    else if (was) this.#send('DELETED', { ...before, ...after })
    if (response.writableLength > UNREAD_MAX) response.destroy()
  }

  /** Whether the first objects were read after this change: a client must not go back in time. */
  #wasShown(key: Key, revision: Revision): boolean {
    if (revision > (this.#shown.at(-1)?.readAt ?? 0)) return false
    const page = this.#shown.find(({ last }) => last === undefined || key <= last)
    return page !== undefined && revision <= page.readAt
  }

  #send(type: string, object: LeaseObject): boolean {
    return this.#write({ type, object: this.#options.show(object) })
  }

  #bookmarkLater(): void {
    const { clock } = this.#options
    const timer = clock.timer(clock.now() + BOOKMARK_MS, () => {
      this.#timers.splice(this.#timers.indexOf(timer), 1)
      if (this.#revision > this.#marked) this.#bookmark()
      this.#bookmarkLater()
    })
    this.#timers.push(timer)
  }

  #bookmark(annotations?: Readonly<Record<string, string>>): void {
    this.#marked = this.#revision
    const metadata = { resourceVersion: String(this.#revision), annotations }
    const object = { apiVersion: API_VERSION, kind: 'Lease', metadata, spec: {} }
    this.#write({ type: 'BOOKMARK', object })
  }

  /** Returns whether the client reads as fast as this writes. */
  #write(event: unknown): boolean {
    if (this.#isOver) return false
    return this.#options.response.write(`${JSON.stringify(event)}\n`)
  }
}
