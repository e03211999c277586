import type { Writable } from 'node:stream'
import {
  LeaseholdError,
  type LeaseId,
  type LeaseStore,
  show,
  type WatchTarget,
} from 'leasehold/port'
import { AGAIN, CLOSE, DONE, type Hello, type RequestMessage, readLeases } from 'leasehold/remote'
import type { WebSocket } from 'ws'
import type { Admission } from '../access/index.ts'
import { Inbox } from './inbox.ts'
import { cut, MalformedError, notAMessage, parseHello } from './messages.ts'
import { carryOut, type Done, encodeAnswer, refusal, type StoreAnswer } from './operations.ts'
import { Outbox } from './outbox.ts'
import type { StreamDependencies } from './stream-dependencies.ts'
import { StreamWatches } from './stream-watches.ts'
import type { TiedClient } from './tied-leases.ts'
import { undo } from './undo.ts'

/** How long a client has to read the reason for a disconnect. */
const CLOSE_MS = 1000
/** The most unanswered reads: their answers may be large. */
const READS_MAX = 16
/**
 * A turn of a connection ends after opening a frame and this many of its requests, or after this many
 * milliseconds. Then others have their turn, and this client reads its first answers.
 */
const TURN_MAX = 64
const TURN_MS = 5
/** The most messages and pings per tick of the event loop. After that, reading pauses. */
const EVENTS_MAX = 64
/** The most leases of one `tie` per turn. */
const TIES_MAX = 256
/** The most request bytes in progress: the next frame waits until all are answered. */
const IN_PROGRESS_BYTES = 1 << 20

/**
 * One client's stream. Requests start in the order of their arrival and are answered as they finish.
 * The answers and notices of one tick of the event loop are sent in one frame.
 */
export class Connection {
  /** When the client last sent something. */
  receivedAt: number
  /** The client's id and principal, after its hello. */
  client: string | undefined
  readonly #socket: WebSocket
  readonly #dependencies: StreamDependencies
  readonly #admission: Admission
  readonly #store: LeaseStore
  readonly #out: Outbox
  readonly #watches: StreamWatches
  #tiedClient: TiedClient | undefined
  readonly #inbox = new Inbox()
  #inFlight = 0
  /** Bytes of the frames that were parsed since nothing was in flight. */
  #bytesInProgress = 0
  #reads = 0
  #paused = false
  #queued = false
  /** The number of messages and pings in the current tick. */
  #events = 0
  #tick = 0
  #ping: Buffer | undefined
  /** No work is done before this time, because its principal has sent too much. */
  #notBefore = 0
  #draining = false
  #over = false
  #idle: (() => void) | undefined

  /** `transport` carries the frames of the socket. */
  constructor(
    socket: WebSocket,
    transport: Writable | undefined,
    dependencies: StreamDependencies,
    admission: Admission,
  ) {
    this.#socket = socket
    this.#dependencies = dependencies
    this.#admission = admission
    this.#store = admission.store
    admission.ended = (error) => this.close(CLOSE.unauthenticated, error.message)
    this.receivedAt = dependencies.clock.now()
    this.#out = new Outbox(socket, transport, dependencies, {
      tooSlow: (bytes) =>
        this.close(CLOSE.slow, `${bytes} bytes are unread: read faster, or watch less`),
      sent: () => this.#contain(() => this.#goOn()),
      failed: (error) => this.#broken(error),
    })
    this.#watches = new StreamWatches(dependencies, admission.store, this.#out)
    const on = (event: string, handle: (...given: never[]) => void) =>
      socket.on(event, (...given) => this.#contain(() => handle(...(given as never[]))))
    on('message', (data: Buffer, isBinary: boolean) => this.#receive(data, isBinary))
    on('ping', (data: Buffer) => this.#pinged(data))
    on('pong', () => this.#count())
    on('error', (error: Error) => dependencies.log.debug({ err: error }, 'a stream failed'))
    on('close', (code: number) => this.#closed(code))
  }

  get greeted(): boolean {
    return this.client !== undefined
  }

  /** Whether the server paused reading because of its own work, not because the client is slow. */
  get isPausedByServer(): boolean {
    return this.#paused && !this.#out.isFull
  }

  ping(): void {
    this.#contain(() => this.#socket.ping())
  }

  /**
   * Starts no more requests, tells the client so, and closes when all started requests are answered.
   */
  async drain(): Promise<void> {
    this.#draining = true
    // Requests that were not started are refused, so that the client repeats them elsewhere.
    this.#contain(() => {
      while (!this.#inbox.isEmpty && !this.#over) this.#takeTurn()
    })
    this.#out.push(JSON.stringify(['bye', 'the server is stopping; reconnect']))
    this.#out.flush()
    if (this.#inFlight > 0) {
      await new Promise<void>((resolve) => {
        this.#idle = resolve
      })
    }
    this.#out.flush()
    this.close(CLOSE.goingAway, 'the server is stopping; reconnect')
  }

  /** Disconnects the client with a reason. */
  close(code: number, reason: string): void {
    if (this.#over) return
    this.#end()
    const { clock, log } = this.#dependencies
    log.debug({ principal: this.#admission.principal.name, code, reason }, 'a stream is closed')
    clock.timer(clock.now() + CLOSE_MS, () => this.#socket.terminate())
    this.#socket.close(code, cut(reason))
  }

  /**
   * An error in work for this client closes its connection and nothing else. The client is told if it
   * broke the protocol; any other error is a bug of the server and is logged.
   */
  #contain(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.#broken(error)
    }
  }

  #broken(error: unknown): void {
    if (error instanceof MalformedError) {
      this.#dependencies.stats.malformed++
      this.close(CLOSE.malformed, error.message)
      // Read nothing more: every byte would cost other clients time.
      this.#socket.pause()
      return
    }
    this.#dependencies.log.error(
      { err: error, principal: this.#admission.principal.name },
      'internal error on a stream; closing it',
    )
    try {
      this.close(CLOSE.failed, 'internal error; see the log of the server')
    } catch {
      this.#socket.terminate()
    }
  }

  #receive(data: Buffer, isBinary: boolean): void {
    this.#count()
    if (this.#isGone) return
    if (isBinary) throw new MalformedError('a frame is binary: send JSON in text frames')
    this.#inbox.add(data)
    const delay = this.#admission.payload(data.length)
    if (delay > 0) this.#wait(delay)
    this.#goOn()
  }

  /** Counts a message or ping. After too many in one tick, reading pauses. */
  #count(): void {
    const tick = this.#dependencies.scheduler.tick()
    if (tick !== this.#tick) {
      this.#tick = tick
      this.#events = 0
      this.#alive()
    }
    if (++this.#events <= EVENTS_MAX) return
    this.#pause(true)
    if (!this.#queued) this.#queue()
  }

  /**
   * Answers only the last ping of a tick, and none of a slow client: the pongs could fill the memory.
   */
  #pinged(data: Buffer): void {
    this.#count()
    const isFirst = this.#ping === undefined
    this.#ping = data
    if (!isFirst) return
    this.#dependencies.clock.defer(() => {
      const ping = this.#ping
      this.#ping = undefined
      if (this.#isGone || this.#out.isFull) return
      this.#contain(() => this.#socket.pong(ping))
    })
  }

  /** Whether the client has gone: no more requests are started. */
  get #isGone(): boolean {
    return this.#over || this.#socket.readyState !== this.#socket.OPEN
  }

  /** Delays all work, because the principal has sent more bytes than its quota allows. */
  #wait(ms: number): void {
    const { clock } = this.#dependencies
    this.#notBefore = clock.now() + ms
    clock.timer(this.#notBefore, () => this.#contain(() => this.#goOn()))
  }

  /**
   * Asks for a turn, now or in a later tick, if work may start. While there is unprocessed input,
   * nothing more is read from the client.
   */
  #goOn(later = false): void {
    if (this.#queued) return
    if (!this.#inbox.isEmpty && this.#mayGoOn(this.#dependencies.clock.now())) {
      if (later) this.#queue()
      else {
        this.#queued = true
        this.#dependencies.scheduler.ask(this.#admission.principal, this.#turn)
      }
    }
    this.#pause(!this.#inbox.isEmpty)
  }

  #queue(): void {
    this.#queued = true
    this.#dependencies.scheduler.queue(this.#admission.principal, this.#turn)
  }

  readonly #turn = (): void => {
    this.#contain(() => {
      if (!this.#isGone) this.#takeTurn()
    })
    this.#queued = false
    this.#contain(() => {
      if (this.#isGone) this.#inbox.clear()
      else this.#goOn(true)
    })
  }

  #takeTurn(): void {
    const { clock } = this.#dependencies
    const end = clock.now() + TURN_MS
    for (let step = 0; step <= TURN_MAX && !this.#inbox.isEmpty && !this.#over; step++) {
      const now = clock.now()
      if (!this.#draining && (!this.#mayGoOn(now) || (step > 1 && now >= end))) return
      if (this.#inbox.isRead) this.#open()
      else this.#handle(this.#inbox.take()!)
    }
  }

  /** Opens the next frame. */
  #open(): void {
    const bytes = this.#inbox.open(this.#dependencies.options)
    this.#bytesInProgress = (this.#inFlight === 0 ? 0 : this.#bytesInProgress) + bytes
    if (!this.greeted) this.#greet(this.#inbox.take())
  }

  #mayGoOn(now: number): boolean {
    if (this.#inFlight >= this.#dependencies.options.inFlight || this.#out.isFull) return false
    if (now < this.#notBefore) return false
    if (this.#inbox.isRead) return this.#inFlight === 0 || this.#bytesInProgress < IN_PROGRESS_BYTES
    return this.#reads < READS_MAX || this.#inbox.first![1] !== 'read'
  }

  #pause(pause: boolean): void {
    if (pause === this.#paused || this.#over) return
    this.#paused = pause
    if (pause) this.#socket.pause()
    else {
      // A paused client could not be received.
      this.#alive()
      this.#socket.resume()
    }
  }

  #greet(message: readonly unknown[] | undefined): void {
    const { tiedLeases, options, welcome } = this.#dependencies
    const hello = parseHello(message)
    if (hello instanceof LeaseholdError) {
      this.#out.push(JSON.stringify(['refused', hello.code, hello.message]))
      this.#out.flush()
      this.close(CLOSE.version, hello.message)
      return
    }
    const { client, tied }: Hello = hello
    // Ids belong to a principal: the same id of another principal is another client.
    const own = JSON.stringify([this.#admission.principal.name, client])
    this.client = own
    this.#dependencies.greeted(this, own)
    if (tied === undefined) tiedLeases.forget(own)
    else this.#tiedClient = tiedLeases.join(own, Math.min(tied, options.linger))
    this.#out.push(welcome)
    this.#out.flush()
  }

  #handle(given: readonly unknown[]): void {
    if (!Number.isSafeInteger(given[0])) throw notAMessage(given)
    const message = given as RequestMessage
    const [id, operation] = message
    if (operation === 'watch') {
      if (!this.#draining) this.#watches.open(id, message[2] as WatchTarget)
    } else if (operation === 'unwatch') this.#watches.close(message[2] as number)
    else if (this.#draining) this.#out.push(`[${id},${AGAIN}]`)
    else if (operation === 'tie') this.#tie(message)
    else this.#perform(message)
  }

  #perform(message: RequestMessage): void {
    this.#dependencies.stats.requests++
    let answer: ReturnType<typeof carryOut>
    try {
      answer = carryOut(this.#store, message)
    } catch (error) {
      answer = Promise.reject(error)
    }
    if (answer === undefined) throw new MalformedError(`unknown operation ${show(message[1])}`)
    this.#inFlight++
    if (message[1] === 'read') this.#reads++
    answer.then(
      (it) => this.#answered(message, this.#encoded(message, it)),
      (error) => this.#answered(message, refusal(message[0], error)),
    )
  }

  #encoded(message: RequestMessage, answer: StoreAnswer): string {
    try {
      return encodeAnswer(message, answer, this.#done)
    } catch (error) {
      return refusal(message[0], error)
    }
  }

  #answered(message: RequestMessage, answer: string): void {
    this.#inFlight--
    if (message[1] === 'read') this.#reads--
    try {
      this.#out.push(answer)
      // In a later tick: a store that answers at once would otherwise delay all other clients.
      if (this.#paused) this.#goOn(true)
    } catch (error) {
      this.#broken(error)
    }
    if (this.#inFlight === 0) this.#idle?.()
  }

  /** Called after a grant or claim. */
  readonly #done: Done = (message, answer) => {
    if (this.#isGone && undo(this.#dependencies, this.#admission, message, answer)) return
    if (answer.outcome !== 'granted' || this.#tiedClient === undefined) return
    if ((message[2] as { readonly tied?: unknown }).tied !== false) this.#tieOne(answer.lease)
  }

  #tieOne(lease: LeaseId): void {
    // A lease of another holder must not end with this connection.
    const own = this.#admission.ownLease(lease)
    if (own !== undefined) this.#dependencies.tiedLeases.tie(this.#tiedClient!, own)
  }

  /** Ties some leases in this turn, and leaves the rest in the inbox for the next turn. */
  #tie(message: RequestMessage): void {
    if (this.#tiedClient === undefined)
      throw new MalformedError('tie is not allowed on a stream that is not tied')
    const [id, operation] = message
    try {
      const leases = readLeases(message)
      for (const lease of leases.slice(0, TIES_MAX)) this.#tieOne(lease)
      if (leases.length > TIES_MAX) this.#inbox.putBack([id, operation, leases.slice(TIES_MAX)])
      else this.#out.push(`[${id},${DONE}]`)
    } catch (error) {
      // An invalid lease cannot be watched. That is the client's mistake, not a bug of the server.
      this.#out.push(refusal(id, error))
    }
  }

  #alive(): void {
    this.receivedAt = this.#dependencies.clock.now()
  }

  #closed(code: number): void {
    this.#end()
    const { tiedLeases } = this.#dependencies
    const wasNewest = this.#dependencies.left(this)
    if (this.#tiedClient === undefined || !wasNewest) return
    if (code === CLOSE.moved) {
      tiedLeases.forget(this.client!)
      return
    }
    tiedLeases.leave(this.#tiedClient, code === CLOSE.done, this.#inFlight > 0)
  }

  /** Starts nothing more for this client. Started requests finish without an answer. */
  #end(): void {
    this.#over = true
    this.#out.stop()
    this.#inbox.clear()
    this.#watches.closeAll()
    this.#idle?.()
  }
}
