import { LeaseholdError, type Timer } from '../../port/index.ts'
import type { GrpcError, GrpcStream } from './client.ts'
import { faultOf, unanswered } from './faults.ts'
import {
  readWatch,
  type WatchAnswer,
  type WatchCreate,
  type WatchEvent,
  writeWatchCancel,
  writeWatchCreate,
  writeWatchProgress,
} from './messages.ts'
import type { Transport, TransportOptions } from './transport.ts'

const WATCH = '/etcdserverpb.Watch/Watch'
const REST_MIN_MS = 20
const REST_MAX_MS = 500

/** What a watcher is told. */
export interface Hearer {
  /** It sees everything after this revision. Only once, however often the stream is opened. */
  watching?(revision: number): void
  /** What happened, in order; no revision is split between two calls. */
  events(events: readonly WatchEvent[]): void
  /** What it was to see next has been forgotten up to this revision. It is over. */
  compacted(revision: number): void
  /** It is over. */
  failed(error: LeaseholdError): void
}

interface Watcher {
  readonly create: Omit<WatchCreate, 'from'>
  readonly hearer: Hearer
  /** The next revision that it has not seen; 0 for whatever comes next. */
  next: number
  started: boolean
  /** Whether etcd has confirmed it on the present stream. */
  live: boolean
}

/**
 * All watchers of a store on one stream. When the stream breaks it is opened again, at the next member
 * if need be, and each watcher goes on after the last revision that it saw. Where that does not
 * succeed within the time-out, all of them fail: whoever watches must learn that it sees nothing.
 */
export class WatchStream {
  readonly #transport: Transport
  readonly #options: TransportOptions
  readonly #watchers = new Map<number, Watcher>()
  #stream: GrpcStream | undefined
  #opening = false
  #endpoint = 0
  #lastId = 0
  #failures = 0
  /** Since when there is no stream, where there should be one. */
  #downSince: number | undefined
  #heard = true
  #timer: Timer | undefined
  #closed = false

  constructor(transport: Transport, options: TransportOptions) {
    this.#transport = transport
    this.#options = options
  }

  /** Watches from a revision on, or from now on where it is 0. Answers with what ends it. */
  watch(
    range: Pick<WatchCreate, 'key' | 'end' | 'deletesOnly' | 'from'>,
    hearer: Hearer,
  ): () => void {
    const id = ++this.#lastId
    const { from, ...rest } = range
    const watcher = { create: { ...rest, id }, hearer, next: from, started: false, live: false }
    // While nobody watched there was nothing that should have been up.
    if (this.#watchers.size === 0) this.#downSince = undefined
    this.#watchers.set(id, watcher)
    if (this.#stream) this.#create(watcher)
    else this.#open()
    return () => this.#remove(id)
  }

  /** Whether everything is heard that happens. */
  get isUp(): boolean {
    return this.#stream !== undefined && this.#downSince === undefined
  }

  close(): void {
    this.#closed = true
    this.#watchers.clear()
    this.#drop()
  }

  #remove(id: number): void {
    if (!this.#watchers.delete(id)) return
    if (this.#watchers.size === 0) this.#drop()
    else this.#stream?.write(writeWatchCancel(id))
  }

  #open(): void {
    if (this.#opening || this.#closed) return
    this.#opening = true
    this.#downSince ??= this.#options.clock.now()
    this.#transport.stream(WATCH).then(
      ({ stream, endpoint }) => {
        this.#opening = false
        this.#stream = stream
        this.#endpoint = endpoint
        stream.on('data', (bytes) => this.#hear(stream, readWatch(bytes)))
        stream.on('error', (error) => this.#broken(stream, error))
        stream.on('end', () => this.#broken(stream, { message: 'the stream was ended' }))
        if (this.#closed || this.#watchers.size === 0) return this.#drop()
        for (const watcher of this.#watchers.values()) this.#create(watcher)
        this.#heard = true
        this.#listen()
      },
      (error: LeaseholdError) => {
        this.#opening = false
        this.#failAll(error)
      },
    )
  }

  #create(watcher: Watcher): void {
    watcher.live = false
    this.#stream!.write(writeWatchCreate({ ...watcher.create, from: watcher.next }))
  }

  #hear(stream: GrpcStream, answer: WatchAnswer): void {
    if (stream !== this.#stream) return
    this.#heard = true
    this.#failures = 0
    this.#downSince = undefined
    const watcher = this.#watchers.get(answer.id)
    if (watcher === undefined) return
    if (answer.canceled) this.#canceled(watcher, answer)
    else if (answer.created) {
      watcher.live = true
      if (watcher.next === 0) watcher.next = answer.revision + 1
      if (!watcher.started) {
        watcher.started = true
        watcher.hearer.watching?.(watcher.next - 1)
      }
    } else this.#pass(watcher, answer)
  }

  #pass(watcher: Watcher, { events, revision }: WatchAnswer): void {
    // A sign of life of one watcher: nothing has happened that it should have seen.
    if (events.length === 0 && watcher.live) watcher.next = Math.max(watcher.next, revision + 1)
    const unseen = events.filter(({ kv }) => kv.changed >= watcher.next)
    if (unseen.length === 0) return
    watcher.next = unseen.at(-1)!.kv.changed + 1
    watcher.hearer.events(unseen)
  }

  #canceled(watcher: Watcher, { compacted, reason }: WatchAnswer): void {
    this.#watchers.delete(watcher.create.id)
    if (compacted > 0) watcher.hearer.compacted(compacted)
    else {
      const denied = /permission denied/.test(reason)
      const error = denied
        ? new LeaseholdError('forbidden', `etcd does not allow this watch (${reason})`)
        : unanswered(`a watch was ended: ${reason}`, this.#options.endpoints)
      watcher.hearer.failed(error)
    }
    if (this.#watchers.size === 0) this.#drop()
  }

  /** A member that has nothing to tell is asked for a sign of life, and left if it gives none. */
  #listen(): void {
    const { clock, patience } = this.#options
    this.#timer?.cancel()
    // After a stall of this process what etcd has said meanwhile comes first.
    this.#timer = clock.timer(clock.now() + patience, () => clock.defer(() => this.#ask()))
  }

  #ask(): void {
    const stream = this.#stream
    if (stream === undefined) return
    if (!this.#heard) {
      this.#broken(stream, { message: `silent for ${this.#options.patience} ms` })
      return
    }
    this.#heard = false
    stream.write(writeWatchProgress())
    this.#listen()
  }

  #broken(stream: GrpcStream, error: GrpcError): void {
    if (stream !== this.#stream) return
    this.#drop()
    const { clock, timeout, endpoints, random } = this.#options
    const fault = faultOf(error)
    if (fault.kind === 'stale-login') this.#transport.loginAgain()
    this.#transport.failed(this.#endpoint)
    this.#downSince ??= clock.now()
    if (fault.kind === 'refused') this.#failAll(fault.error)
    else if (clock.now() - this.#downSince >= timeout) {
      this.#failAll(unanswered(error.message, endpoints))
    } else {
      const longest = Math.min(REST_MIN_MS * 2 ** this.#failures++, REST_MAX_MS)
      this.#openAfter(longest * (0.5 + 0.5 * random.next()))
    }
  }

  #openAfter(rest: number): void {
    const { clock } = this.#options
    this.#opening = true
    const open = () => {
      this.#opening = false
      if (this.#watchers.size > 0) this.#open()
    }
    clock.timer(clock.now() + rest, open, true)
  }

  #failAll(error: LeaseholdError): void {
    const watchers = [...this.#watchers.values()]
    this.#watchers.clear()
    this.#downSince = undefined
    for (const { hearer } of watchers) hearer.failed(error)
  }

  #drop(): void {
    const stream = this.#stream
    this.#stream = undefined
    this.#timer?.cancel()
    stream?.cancel()
  }
}
