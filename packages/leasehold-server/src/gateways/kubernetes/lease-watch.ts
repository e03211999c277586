import type { ServerResponse } from 'node:http'
import type { Clock, LeaseStore, Notice, Revision, Timer } from 'leasehold/port'
import { type LeaseObject, leaseObject } from './lease-object.ts'
import { type Change, changesOf, type Version } from './lease-storage.ts'
import type { Selector } from './selectors.ts'
import { VERSION as API_VERSION, expired, statusOf } from './status.ts'

export interface LeaseWatchOptions {
  readonly clock: Clock
  readonly store: LeaseStore
  readonly prefix: string
  readonly selector: Selector
  /** Report the changes after this revision. */
  readonly from: Revision
  /** The objects to report first, and whether to say when they are complete. */
  readonly initial: readonly Version[]
  readonly marksInitial: boolean
  /** Whether the client wants to know the revision now and then. */
  readonly bookmarks: boolean
  /** In milliseconds. */
  readonly timeout: number
  /** How the client wants to see objects. */
  readonly show: (object: LeaseObject) => unknown
  readonly response: ServerResponse
}

const BOOKMARK_MS = 60_000
/** A client with this many unread bytes is disconnected. It can resume. */
const UNREAD_MAX = 4 << 20
const INITIAL_END = { 'k8s.io/initial-events-end': 'true' }

/** The changes of objects as a stream of lines of JSON. */
export class LeaseWatch {
  readonly #options: LeaseWatchOptions
  readonly #timers: Timer[] = []
  #revision: Revision
  #marked: Revision

  constructor(options: LeaseWatchOptions) {
    this.#options = options
    this.#revision = options.from
    this.#marked = options.from
  }

  /** Writes until the time is over, the client has left, or the watch of the store has ended. */
  start(): void {
    const { clock, store, prefix, from, response, timeout, initial, selector } = this.#options
    // First, because it may be refused.
    const watch = store.watch({ prefix, from }, (notice) => this.#on(notice))
    response.writeHead(200, {
      'content-type': 'application/json',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    })
    response.flushHeaders()
    for (const { stored, token } of initial) {
      if (selector(stored.metadata)) this.#send('ADDED', leaseObject(stored, token))
    }
    if (this.#options.marksInitial) this.#bookmark(INITIAL_END)
    response.once('close', () => {
      watch.close()
      for (const timer of this.#timers) timer.cancel()
    })
    this.#timers.push(clock.timer(clock.now() + timeout, () => this.end()))
    if (this.#options.bookmarks) this.#bookmarkLater()
  }

  end(): void {
    this.#options.response.end()
  }

  /** Ends the watch with the reason. The client lists again, or connects again. */
  fail(error: unknown): void {
    this.#write({ type: 'ERROR', object: statusOf(error) })
    this.end()
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
  #report({ before, after }: Change): void {
    const { selector } = this.#options
    const was = before !== undefined && selector(before.metadata)
    const is = after !== undefined && selector(after.metadata)
    if (is) this.#send(was ? 'MODIFIED' : 'ADDED', after)
    else if (was) this.#send('DELETED', { ...before, ...after })
  }

  #send(type: string, object: LeaseObject): void {
    this.#write({ type, object: this.#options.show(object) })
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

  #write(event: unknown): void {
    const { response } = this.#options
    if (response.writableEnded || response.destroyed) return
    response.write(`${JSON.stringify(event)}\n`)
    if (response.writableLength > UNREAD_MAX) response.destroy()
  }
}
