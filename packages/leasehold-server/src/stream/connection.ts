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
import { carryOut, type Done, refusal } from './operations.ts'
import { Outgoing } from './outgoing.ts'
import { StreamWatches } from './stream-watches.ts'
import type { Surroundings } from './surroundings.ts'
import type { Bond } from './ties.ts'
import { undo } from './undo.ts'

/** How long a client has to read why it is being disconnected. */
const FAREWELL_MS = 1000
/** An answer to a reading may be large, so that few are made before one has left. */
const READS_MAX = 16
/**
 * A turn of a connection ends after a frame is opened and so many of its requests are carried out, or
 * after so many milliseconds. Others then have theirs, and this client reads its first answers.
 */
const TURN_MAX = 64
const TURN_MS = 5
/** Messages and pings of one tick of the event loop. When more come, the client is not read. */
const EVENTS_MAX = 64
/** Leases of one `tie` that are tied in one turn. */
const TIES_MAX = 256
/** So many bytes of requests may be under way: the next frame waits until all are answered. */
const UNDER_WAY_BYTES = 1 << 20

/**
 * One client's stream. Requests are carried out in the order in which they come, and answered as
 * they are done; answers and notices of one turn of the event loop leave in one frame.
 */
export class Connection {
  /** When something was last heard of the client. */
  heardAt: number
  /** Who it is, when it has said so: the id that it gave, and its principal. */
  client: string | undefined
  readonly #socket: WebSocket
  readonly #around: Surroundings
  readonly #admission: Admission
  readonly #store: LeaseStore
  readonly #out: Outgoing
  readonly #watches: StreamWatches
  #bond: Bond | undefined
  readonly #inbox = new Inbox()
  #inFlight = 0
  /** Bytes of the frames that were parsed since nothing was in flight. */
  #underWay = 0
  #reads = 0
  #paused = false
  #queued = false
  /** How many messages and pings have come in which tick. */
  #events = 0
  #tick = 0
  #ping: Buffer | undefined
  /** Until then its principal may have nothing more done, because it has sent too much. */
  #notBefore = 0
  #draining = false
  #over = false
  #idle: (() => void) | undefined

  constructor(socket: WebSocket, around: Surroundings, admission: Admission) {
    this.#socket = socket
    this.#around = around
    this.#admission = admission
    this.#store = admission.store
    admission.ended = (error) => this.close(CLOSE.unauthenticated, error.message)
    this.heardAt = around.clock.now()
    this.#out = new Outgoing(socket, around, {
      tooSlow: (bytes) =>
        this.close(CLOSE.slow, `${bytes} bytes were not read: read faster, or watch less`),
      left: () => this.#contain(() => this.#goOn()),
      failed: (error) => this.#broken(error),
    })
    this.#watches = new StreamWatches(around, admission.store, this.#out)
    const on = (event: string, handle: (...given: never[]) => void) =>
      socket.on(event, (...given) => this.#contain(() => handle(...(given as never[]))))
    on('message', (data: Buffer, isBinary: boolean) => this.#hear(data, isBinary))
    on('ping', (data: Buffer) => this.#pinged(data))
    on('pong', () => this.#came())
    on('error', (error: Error) => around.log.debug({ err: error }, 'a stream failed'))
    on('close', (code: number) => this.#closed(code))
  }

  get greeted(): boolean {
    return this.client !== undefined
  }

  /** It is not listened to, because what it asked for takes long; not because it does not read. */
  get isHeldUp(): boolean {
    return this.#paused && !this.#out.isFull
  }

  ping(): void {
    this.#contain(() => this.#socket.ping())
  }

  /**
   * Carries out nothing more, tells the client so, and closes when all that was begun has been
   * answered. Fulfilled when that is so.
   */
  async drain(): Promise<void> {
    this.#draining = true
    // What was not begun is not carried out any more, and its sender learns that.
    this.#contain(() => {
      while (!this.#inbox.isEmpty && !this.#over) this.#takeTurn()
    })
    this.#out.push(JSON.stringify(['bye', 'the server stops: connect again']))
    this.#out.flush()
    if (this.#inFlight > 0) {
      await new Promise<void>((resolve) => {
        this.#idle = resolve
      })
    }
    this.#out.flush()
    this.close(CLOSE.goingAway, 'the server stops: connect again')
  }

  /** Disconnects the client, with a reason that it is told if it listens. */
  close(code: number, reason: string): void {
    if (this.#over) return
    this.#end()
    const { clock, log } = this.#around
    log.debug({ principal: this.#admission.principal.name, code, reason }, 'a stream is closed')
    clock.timer(clock.now() + FAREWELL_MS, () => this.#socket.terminate())
    this.#socket.close(code, cut(reason))
  }

  /**
   * Whatever goes wrong on behalf of this client ends its connection, and nothing else. A client that
   * breaks the protocol is told so; anything else is our fault, and is logged.
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
      this.#around.stats.malformed++
      this.close(CLOSE.malformed, error.message)
      // Until it has read why, it could send on, and every byte would cost others time.
      this.#socket.pause()
      return
    }
    this.#around.log.error(
      { err: error, principal: this.#admission.principal.name },
      'the server failed on a stream, and closes it',
    )
    try {
      this.close(CLOSE.failed, 'the server failed: see its log')
    } catch {
      this.#socket.terminate()
    }
  }

  #hear(data: Buffer, isBinary: boolean): void {
    this.#came()
    if (this.#isGone) return
    if (isBinary) throw new MalformedError('a frame is binary: send JSON as text')
    this.#inbox.add(data)
    const delay = this.#admission.payload(data.length)
    if (delay > 0) this.#wait(delay)
    this.#goOn()
  }

  /** Something has come. If more comes in this tick than should, the rest is read later. */
  #came(): void {
    this.#alive()
    const tick = this.#around.turns.tick()
    if (tick !== this.#tick) {
      this.#tick = tick
      this.#events = 0
    }
    if (++this.#events <= EVENTS_MAX) return
    this.#pause(true)
    if (!this.#queued) this.#queue()
  }

  /**
   * Answers the last ping of a tick; but none of a client that does not read, which could otherwise
   * fill the memory with pongs.
   */
  #pinged(data: Buffer): void {
    this.#came()
    const isFirst = this.#ping === undefined
    this.#ping = data
    if (!isFirst) return
    this.#around.clock.defer(() => {
      const ping = this.#ping
      this.#ping = undefined
      if (this.#isGone || this.#out.isFull) return
      this.#contain(() => this.#socket.pong(ping))
    })
  }

  /** Nobody is there who could be answered: what was not begun is not begun any more. */
  get #isGone(): boolean {
    return this.#over || this.#socket.readyState !== this.#socket.OPEN
  }

  /** The client has sent more than its principal may in this time: nothing is done for so long. */
  #wait(ms: number): void {
    const { clock } = this.#around
    this.#notBefore = clock.now() + ms
    clock.timer(this.#notBefore, () => this.#contain(() => this.#goOn()))
  }

  /**
   * Asks for a turn, if something may be done now; or for one in a later tick. While anything waits,
   * nothing more is read from the client.
   */
  #goOn(later = false): void {
    if (this.#queued) return
    if (!this.#inbox.isEmpty && this.#mayGoOn()) {
      if (later) this.#queue()
      else {
        this.#queued = true
        this.#around.turns.ask(this.#admission.principal, this.#turn)
      }
    }
    this.#pause(!this.#inbox.isEmpty)
  }

  #queue(): void {
    this.#queued = true
    this.#around.turns.queue(this.#admission.principal, this.#turn)
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
    const { clock } = this.#around
    const end = clock.now() + TURN_MS
    for (let step = 0; step <= TURN_MAX && !this.#inbox.isEmpty && !this.#over; step++) {
      if (!this.#draining && (!this.#mayGoOn() || (step > 1 && clock.now() >= end))) return
      if (this.#inbox.isRead) this.#open()
      else this.#handle(this.#inbox.take()!)
    }
  }

  /** Takes the messages out of the next frame. */
  #open(): void {
    const bytes = this.#inbox.open(this.#around.options)
    this.#underWay = (this.#inFlight === 0 ? 0 : this.#underWay) + bytes
    if (!this.greeted) this.#greet(this.#inbox.take())
  }

  #mayGoOn(): boolean {
    const { clock, options } = this.#around
    if (this.#inFlight >= options.inFlight || this.#out.isFull) return false
    if (clock.now() < this.#notBefore) return false
    if (this.#inbox.isRead) return this.#inFlight === 0 || this.#underWay < UNDER_WAY_BYTES
    return this.#reads < READS_MAX || this.#inbox.first![1] !== 'read'
  }

  #pause(pause: boolean): void {
    if (pause === this.#paused || this.#over) return
    this.#paused = pause
    if (pause) this.#socket.pause()
    else {
      // Whoever was not read could not be heard.
      this.#alive()
      this.#socket.resume()
    }
  }

  #greet(message: readonly unknown[] | undefined): void {
    const { ties, options, welcome } = this.#around
    const hello = parseHello(message)
    if (hello instanceof LeaseholdError) {
      this.#out.push(JSON.stringify(['refused', hello.code, hello.message]))
      this.#out.flush()
      this.close(CLOSE.version, hello.message)
      return
    }
    const { client, tied }: Hello = hello
    // An id is its principal's own: another one that knows it is another client.
    const own = JSON.stringify([this.#admission.principal.name, client])
    this.client = own
    this.#around.greeted(this, own)
    if (tied === undefined) ties.forget(own)
    else this.#bond = ties.join(own, Math.min(tied, options.linger))
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
    else this.#carryOut(message)
  }

  #carryOut(message: RequestMessage): void {
    this.#around.stats.requests++
    let answer: Promise<string> | undefined
    try {
      answer = carryOut(this.#store, message, this.#done)
    } catch (error) {
      answer = Promise.reject(error)
    }
    if (answer === undefined) throw new MalformedError(`there is no operation ${show(message[1])}`)
    this.#inFlight++
    const isRead = message[1] === 'read'
    if (isRead) this.#reads++
    const answered = isRead ? this.#answeredRead : this.#answered
    answer.then(answered, (error) => answered(refusal(message[0], error)))
  }

  readonly #answeredRead = (text: string): void => {
    this.#reads--
    this.#answered(text)
  }

  readonly #answered = (text: string): void => {
    this.#inFlight--
    try {
      this.#out.push(text)
      // Later: a store that answers at once would otherwise keep all others waiting.
      if (this.#paused) this.#goOn(true)
    } catch (error) {
      this.#broken(error)
    }
    if (this.#inFlight === 0) this.#idle?.()
  }

  /** Something was granted or claimed. */
  readonly #done: Done = (message, answer) => {
    if (this.#isGone && undo(this.#around, this.#admission, message, answer)) return
    if (answer.outcome === 'granted' && this.#bond !== undefined) this.#tieOne(answer.lease)
  }

  #tieOne(lease: LeaseId): void {
    // A lease that is not one's own must not end with one's connection.
    const own = this.#admission.ownLease(lease)
    if (own !== undefined) this.#around.ties.tie(this.#bond!, own)
  }

  /** Ties so many leases in one turn, and leaves the rest in the inbox for the next ones. */
  #tie(message: RequestMessage): void {
    if (this.#bond === undefined) throw new MalformedError('tie on a stream that is not tied')
    const [id, operation] = message
    try {
      const leases = readLeases(message)
      for (const lease of leases.slice(0, TIES_MAX)) this.#tieOne(lease)
      if (leases.length > TIES_MAX) this.#inbox.putBack([id, operation, leases.slice(TIES_MAX)])
      else this.#out.push(`[${id},${DONE}]`)
    } catch (error) {
      // What is no lease cannot be watched: that is its sender's fault, and must not be the server's.
      this.#out.push(refusal(id, error))
    }
  }

  #alive(): void {
    this.heardAt = this.#around.clock.now()
  }

  #closed(code: number): void {
    this.#end()
    const { ties } = this.#around
    const wasNewest = this.#around.left(this)
    if (this.#bond === undefined || !wasNewest) return
    ties.leave(this.#bond, code === CLOSE.done, this.#inFlight > 0)
  }

  /** Nothing more is begun for this client. What was begun goes on without an answer. */
  #end(): void {
    this.#over = true
    this.#out.stop()
    this.#inbox.clear()
    this.#watches.closeAll()
    this.#idle?.()
  }
}
