import { LeaseholdError, type LeaseStore, show, type Watch, type WatchTarget } from 'leasehold/port'
import {
  AGAIN,
  CLOSE,
  DONE,
  type Hello,
  type RequestMessage,
  readLeases,
  writeNotice,
} from 'leasehold/remote'
import type { WebSocket } from 'ws'
import type { Admission } from '../access/index.ts'
import { MalformedError, parseFrame, parseHello } from './messages.ts'
import { asLeaseholdError, carryOut, refusal } from './operations.ts'
import { Outgoing } from './outgoing.ts'
import type { Surroundings } from './surroundings.ts'
import type { Bond } from './ties.ts'

/** How long a client has to read why it is being disconnected. */
const FAREWELL_MS = 1000
/** A close frame has no room for more. */
const REASON_BYTES = 120
/** An answer to a reading may be large, so that few are made before one has left. */
const READS_MAX = 16
/**
 * So many requests of one client are carried out in one turn of the event loop. Others then have
 * theirs; and this client reads its first answers while its next requests are carried out.
 */
const TURN_MAX = 64

/**
 * One client's stream. Requests are carried out in the order in which they come, and answered as
 * they are done; answers and notices of one turn of the event loop leave in one frame.
 */
export class Connection {
  /** When something was last heard of the client. */
  heardAt: number
  client: string | undefined
  readonly #socket: WebSocket
  readonly #around: Surroundings
  readonly #admission: Admission
  readonly #store: LeaseStore
  readonly #out: Outgoing
  readonly #watches = new Map<number, Watch>()
  #bond: Bond | undefined
  /** Requests that have come and are yet to be carried out, from the number `#next` on. */
  #inbox: RequestMessage[] = []
  #next = 0
  #inFlight = 0
  #reads = 0
  #paused = false
  #rests = false
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
      left: () => this.#goOn(),
    })
    socket.on('message', (data: Buffer, isBinary) => this.#hear(data, isBinary))
    socket.on('ping', () => this.#alive())
    socket.on('pong', () => this.#alive())
    socket.on('error', (error) => around.log.debug({ err: error }, 'a stream failed'))
    socket.on('close', (code) => this.#closed(code))
  }

  get greeted(): boolean {
    return this.client !== undefined
  }

  /** It is not listened to, because what it asked for takes long; not because it does not read. */
  get isHeldUp(): boolean {
    return this.#paused && !this.#out.isFull
  }

  ping(): void {
    this.#socket.ping()
  }

  /**
   * Carries out nothing more, tells the client so, and closes when all that was begun has been
   * answered. Fulfilled when that is so.
   */
  async drain(): Promise<void> {
    this.#draining = true
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
    log.debug({ client: this.client, code, reason }, 'a stream is closed')
    this.#socket.close(code, Buffer.from(reason).subarray(0, REASON_BYTES))
    clock.timer(clock.now() + FAREWELL_MS, () => this.#socket.terminate())
  }

  #hear(data: Buffer, isBinary: boolean): void {
    this.#alive()
    if (this.#over) return
    try {
      const messages = parseFrame(data, isBinary, this.#around.options)
      let from = 0
      if (!this.greeted) {
        this.#greet(messages[0])
        from = 1
      }
      for (let at = from; at < messages.length; at++) {
        this.#inbox.push(messages[at] as RequestMessage)
      }
    } catch (error) {
      this.#malformed(error)
    }
    this.#goOn()
  }

  /**
   * Carries out what has come, as far as it may: so much at a time, and nothing while the client
   * does not read its answers. Where something must wait, nothing more is read from the client.
   */
  #goOn(): void {
    if (this.#rests) return
    try {
      const end = this.#next + TURN_MAX
      while (this.#next < this.#inbox.length && !this.#over && this.#mayGoOn()) {
        if (this.#next === end) break
        this.#handle(this.#inbox[this.#next++]!)
      }
      // Also where nothing waits now: the next frame may have come together with this one.
      if (this.#next === end) this.#rest()
    } catch (error) {
      this.#malformed(error)
    }
    const waits = this.#next < this.#inbox.length && !this.#over
    if (!waits && this.#next > 0) {
      this.#inbox = []
      this.#next = 0
    }
    if (waits !== this.#paused) this.#pause(waits)
  }

  #rest(): void {
    this.#rests = true
    this.#around.clock.defer(() => {
      this.#rests = false
      this.#goOn()
    })
  }

  #mayGoOn(): boolean {
    if (this.#inFlight >= this.#around.options.inFlight || this.#out.isFull) return false
    return this.#reads < READS_MAX || this.#inbox[this.#next]![1] !== 'read'
  }

  #pause(pause: boolean): void {
    this.#paused = pause
    if (pause) this.#socket.pause()
    else {
      // Whoever was not read could not be heard.
      this.#alive()
      this.#socket.resume()
    }
  }

  #malformed(error: unknown): void {
    if (!(error instanceof MalformedError)) throw error
    this.#around.stats.malformed++
    this.close(CLOSE.malformed, error.message)
  }

  #greet(message: unknown): void {
    const { ties, options, welcome } = this.#around
    const hello = parseHello(message)
    if (hello instanceof LeaseholdError) {
      this.#out.push(JSON.stringify(['refused', hello.code, hello.message]))
      this.#out.flush()
      this.close(CLOSE.version, hello.message)
      return
    }
    const { client, tied }: Hello = hello
    this.client = client
    this.#around.greeted(this, client)
    if (tied !== undefined) this.#bond = ties.join(client, Math.min(tied, options.linger))
    this.#out.push(welcome)
    this.#out.flush()
  }

  #handle(message: RequestMessage): void {
    const [id, operation] = message
    if (operation === 'watch') this.#watch(id, message[2] as WatchTarget)
    else if (operation === 'unwatch') this.#unwatch(message[2] as number)
    else if (this.#draining) this.#out.push(`[${id},${AGAIN}]`)
    else if (operation === 'tie') this.#tie(message)
    else this.#carryOut(message)
  }

  #carryOut(message: RequestMessage): void {
    this.#around.stats.requests++
    this.#inFlight++
    let answer: Promise<string> | undefined
    try {
      answer = carryOut(this.#store, message, this.#granted)
    } catch (error) {
      answer = Promise.reject(error)
    }
    if (answer === undefined) throw new MalformedError(`there is no operation ${show(message[1])}`)
    const isRead = message[1] === 'read'
    if (isRead) this.#reads++
    const done = isRead ? this.#answeredRead : this.#answered
    answer.then(done, (error) => done(refusal(message[0], error)))
  }

  readonly #answeredRead = (text: string): void => {
    this.#reads--
    this.#answered(text)
  }

  readonly #answered = (text: string): void => {
    this.#out.push(text)
    this.#inFlight--
    if (this.#paused) this.#goOn()
    if (this.#inFlight === 0) this.#idle?.()
  }

  readonly #granted = (lease: string): void => {
    if (this.#bond === undefined) return
    // A lease that is not one's own must not end with one's connection.
    const own = this.#admission.ownLease(lease)
    if (own !== undefined) this.#around.ties.tie(this.#bond, own)
  }

  #tie(message: RequestMessage): void {
    const leases = readLeases(message)
    if (!Array.isArray(leases)) throw new MalformedError('tie takes an array of leases')
    if (this.#bond === undefined) throw new MalformedError('tie on a stream that is not tied')
    try {
      for (const lease of leases) this.#granted(lease)
      this.#out.push(`[${message[0]},${DONE}]`)
    } catch (error) {
      // What is no lease cannot be watched: that is its sender's fault, and must not be the server's.
      this.#out.push(refusal(message[0], error))
    }
  }

  #watch(id: number, target: WatchTarget): void {
    if (this.#draining) return
    this.#unwatch(id)
    try {
      const { watches } = this.#around.options
      if (this.#watches.size >= watches) throw tooManyWatches(watches)
      const watch = this.#store.watch(target, (notice) => {
        const { type } = notice
        if (type === 'gone' || type === 'compacted' || type === 'interrupted') {
          this.#watches.delete(id)
        }
        this.#around.stats.notices++
        this.#out.push(writeNotice(id, notice))
      })
      this.#watches.set(id, watch)
    } catch (error) {
      this.#out.push(writeNotice(id, { type: 'interrupted', error: asLeaseholdError(error) }))
    }
  }

  #unwatch(id: number): void {
    this.#watches.get(id)?.close()
    this.#watches.delete(id)
  }

  #alive(): void {
    this.heardAt = this.#around.clock.now()
  }

  #closed(code: number): void {
    this.#end()
    const { ties } = this.#around
    const wasNewest = this.#around.left(this)
    if (this.#bond !== undefined && wasNewest) ties.leave(this.#bond, code === CLOSE.done)
  }

  /** Nothing is done for this client any more. What was begun goes on without an answer. */
  #end(): void {
    this.#over = true
    this.#out.stop()
    for (const watch of this.#watches.values()) watch.close()
    this.#watches.clear()
    this.#idle?.()
  }
}

function tooManyWatches(most: number): LeaseholdError {
  return new LeaseholdError(
    'limit-exceeded',
    `one stream has at most ${most} watches: close some, or watch a common prefix`,
  )
}
