import { type Clock, LeaseholdError, type Random, type Timer } from '../../../port/index.ts'
import type { Auth, Connect, Server, Socket } from '../client.ts'
import { closed, REQUEST_BYTES, tooLarge, tooManyLeaders, unanswered } from '../faults.ts'
import { JuteReader, JuteWriter } from './jute.ts'
import { encodeRequest, exists, KeeperFault, type Request } from './requests.ts'
import { type Listener, WatchTable } from './watch-table.ts'

const XID = { event: -1, ping: -2, auth: -4 } as const
const TYPE = { ping: 11, auth: 100, close: -11 } as const
const XID_MOST = 0x7fff_ffff
/** How long to wait after all servers were tried in vain, at first and at most. */
const REST_MS = { first: 20, most: 1000 }
/** How long an answer to the last message is waited for. */
const FAREWELL_MS = 500

/** The highest transaction of a store's own: no reading of its goes back behind it. */
export interface Horizon {
  zxid: number
}

export interface SessionOptions {
  readonly servers: readonly Server[]
  readonly connect: Connect
  readonly auth: Auth | undefined
  readonly clock: Clock
  readonly random: Random
  /** How long a request may take in all, connecting included. */
  readonly patience: number
  /** A ping is sent so often at least; the session's own timeout may ask for more. */
  readonly pingEvery: number
  readonly horizon: Horizon
}

export interface Answer<R> {
  /** The last transaction that the server had carried out when it answered. */
  readonly zxid: number
  readonly value: R
}

interface Call {
  readonly request: Request<unknown>
  readonly resolve: (answer: Answer<never>) => void
  readonly reject: (error: Error) => void
  readonly until: number
  xid: number
  isOver: boolean
}

/**
 * One session with the ensemble, over one connection at a time. When that breaks, or the server
 * falls silent, the session goes on with another server, and what was not answered is sent again:
 * every request of this store may be carried out twice without harm, because each change makes
 * a node whose name is its own. When the ensemble has ended the session, a new one takes its place
 * and `epoch` rises.
 *
 * Watches are told `missed` whenever a connection begins, instead of being set anew: whoever
 * watches looks again, which it must be able to do anyway.
 */
export class Session {
  readonly #options: SessionOptions
  readonly #wanted: number
  /** What was agreed with the ensemble, once connected. */
  timeout = 0
  epoch = 0
  readonly #servers: Server[]
  #next = 0
  #failures = 0
  #socket: Socket | undefined
  #isUp = false
  #isClosed = false
  #id = 0n
  #password: Buffer = Buffer.alloc(16)
  #rest: Buffer | undefined
  #xid = 0
  #seen = 0
  /** What leaves at the end of this turn. */
  #leaving: Buffer[] = []
  #sent: Call[] = []
  #waiting: Call[] = []
  #heardAt = 0
  #sentAt = 0
  #timer: Timer | undefined
  #rested: Timer | undefined
  #trouble = 'no server has answered yet'
  #fatal: LeaseholdError | undefined
  readonly #watches = new WatchTable()
  #farewell: (() => void) | undefined
  /** Called when a new session has taken the place of one that the ensemble has ended. */
  onReplaced: (() => void) | undefined

  constructor(options: SessionOptions, timeout: number) {
    this.#options = options
    this.#wanted = Math.min(Math.ceil(timeout), XID_MOST)
    this.#servers = shuffled(options.servers, options.random)
    this.#connect()
    this.#tick()
  }

  /** The last transaction that was heard of. */
  get seen(): number {
    return Math.max(this.#seen, this.#options.horizon.zxid)
  }

  get clock(): Clock {
    return this.#options.clock
  }

  /** Sends a request, as often as it takes. Rejected with what it was refused with, or unknown. */
  call<R>(request: Request<R>): Promise<Answer<R>> {
    const refusal = this.#fatal ?? (this.#isClosed ? closed() : undefined)
    if (refusal) return Promise.reject(refusal)
    if (request.bytes > REQUEST_BYTES) return Promise.reject(tooLarge(request.bytes))
    return new Promise((resolve, reject) => {
      const until = this.clock.now() + this.#options.patience
      const call: Call = { request, resolve, reject, until, xid: 0, isOver: false }
      if (this.#isUp) return this.#send(call)
      this.#waiting.push(call)
      this.#hold(this.#socket)
    })
  }

  /** Fulfilled when the ensemble has heard from this session after this was called. */
  async touch(): Promise<void> {
    await this.call(exists('/', false))
  }

  /** Calls back once when the node at this path changes in any way, or may have. */
  watch(path: string, run: () => void): void {
    this.#watches.add(path, run)
  }

  unwatch(path: string, run: () => void): void {
    this.#watches.remove(path, run)
  }

  /** Hears of all below a path; `addWatch` must be sent for it, again after each `missed`. */
  listen(path: string, listener: Listener): void {
    this.#watches.listen(path, listener)
  }

  /**
   * Lets go. With `end` the ensemble is told that the session is over, and its ephemeral nodes go at
   * once; otherwise they stay until its timeout has passed.
   */
  async close(how: 'end' | 'leave'): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const call of [...this.#sent, ...this.#waiting]) {
      // One that waits may have been sent by a connection that broke.
      this.#fail(call, closed(call.request.isChange && call.xid > 0))
    }
    this.#watches.clear()
    this.#timer?.cancel()
    this.#rested?.cancel()
    if (how === 'end' && this.#isUp) {
      await new Promise<void>((resolve) => {
        this.#farewell = resolve
        this.#timer = this.clock.timer(this.clock.now() + FAREWELL_MS, resolve, true)
        this.#write(new JuteWriter().int(this.#nextXid()).int(TYPE.close).finish())
      })
      this.#timer?.cancel()
    }
    this.#socket?.destroy()
  }

  #connect(): void {
    const server = this.#servers[this.#next++ % this.#servers.length]!
    const socket = this.#options.connect(server)
    this.#socket = socket
    this.#rest = undefined
    this.#leaving = []
    this.#heardAt = this.clock.now()
    socket.setNoDelay?.()
    this.#hold(socket)
    // A secure socket is connected before it is secure, and keeps what is written until then.
    socket.on('connect', () => this.#socket === socket && this.#greet())
    socket.on('data', (bytes) => this.#socket === socket && this.#hear(bytes))
    socket.on('error', (error) => {
      if (this.#socket === socket) this.#trouble = `${server.host}:${server.port}: ${error.message}`
    })
    socket.on('close', () => this.#socket === socket && this.#down())
  }

  #greet(): void {
    const writer = new JuteWriter().int(0).long(BigInt(this.seen)).int(this.#wanted)
    this.#write(writer.long(this.#id).buffer(this.#password).boolean(false).finish())
  }

  #down(): void {
    this.#socket = undefined
    this.#isUp = false
    this.#farewell?.()
    if (this.#isClosed) return
    // What was sent may have been carried out; sent again, it finds what it did.
    this.#waiting = [...this.#sent, ...this.#waiting].filter((call) => !call.isOver)
    this.#sent = []
    if (++this.#failures % this.#servers.length !== 0) {
      this.#connect()
      return
    }
    const tries = this.#failures / this.#servers.length
    const rest = Math.min(REST_MS.first * 2 ** (tries - 1), REST_MS.most)
    const time = this.clock.now() + rest * (0.5 + this.#options.random.next() / 2)
    this.#rested = this.clock.timer(time, () => this.#connect(), true)
  }

  #hear(bytes: Buffer): void {
    this.#heardAt = this.clock.now()
    let buffer = this.#rest ? Buffer.concat([this.#rest, bytes]) : bytes
    this.#rest = undefined
    while (buffer.length >= 4) {
      const size = buffer.readInt32BE(0)
      if (buffer.length < 4 + size) break
      const packet = buffer.subarray(4, 4 + size)
      buffer = buffer.subarray(4 + size)
      if (this.#isUp) this.#packet(packet)
      else this.#welcome(new JuteReader(packet))
      if (this.#socket === undefined) return
    }
    if (buffer.length > 0) this.#rest = buffer
  }

  #welcome(reader: JuteReader): void {
    reader.int()
    const timeout = reader.int()
    if (timeout <= 0) {
      // The ensemble has ended this session: the next greeting asks for a new one.
      this.#id = 0n
      this.#password = Buffer.alloc(16)
      this.#socket?.destroy()
      return
    }
    const before = this.#id
    this.#id = reader.long()
    this.#password = Buffer.from(reader.buffer())
    this.timeout = timeout
    this.#failures = 0
    this.#isUp = true
    this.#tick()
    const { auth } = this.#options
    if (auth) {
      const writer = new JuteWriter().int(XID.auth).int(TYPE.auth).int(0).text(auth.scheme)
      this.#write(writer.buffer(Buffer.from(auth.credentials)).finish())
    }
    if (before !== this.#id) this.#begun()
    const waiting = this.#waiting
    this.#waiting = []
    for (const call of waiting) this.#send(call)
    this.#hold(this.#socket)
    this.#watches.missed()
  }

  #begun(): void {
    if (this.epoch++ > 0) this.onReplaced?.()
  }

  #packet(packet: Buffer): void {
    const reader = new JuteReader(packet)
    const xid = reader.int()
    const zxid = reader.number()
    const code = reader.int()
    if (xid === XID.event) this.#event(reader)
    else if (xid === XID.auth && code !== 0) this.#unauthenticated()
    else if (xid > 0) this.#reply(xid, zxid, code, reader)
  }

  #reply(xid: number, zxid: number, code: number, reader: JuteReader): void {
    const call = this.#sent.shift()
    if (call === undefined && this.#isClosed) {
      this.#farewell?.()
      return
    }
    if (call === undefined || call.xid !== xid) {
      this.#trouble = 'a server answered something that was not asked'
      this.#socket?.destroy()
      return
    }
    if (this.#sent.length === 0) this.#hold(this.#socket)
    const { horizon } = this.#options
    this.#seen = Math.max(this.#seen, zxid)
    if (call.request.isChange && zxid > horizon.zxid) horizon.zxid = zxid
    this.#answer(call, zxid, code, reader)
  }

  #answer(call: Call, zxid: number, code: number, reader: JuteReader): void {
    if (call.isOver) return
    try {
      if (!Number.isSafeInteger(zxid)) throw tooManyLeaders(zxid)
      if (code !== 0) throw new KeeperFault(code)
      const value = call.request.read(reader)
      call.isOver = true
      call.resolve({ zxid, value: value as never })
    } catch (error) {
      this.#fail(call, error as Error)
    }
  }

  #event(reader: JuteReader): void {
    const type = reader.int()
    reader.int()
    this.#watches.heard(type, reader.text())
  }

  #send(call: Call): void {
    call.xid = this.#nextXid()
    if (this.#sent.push(call) === 1) this.#hold(this.#socket)
    this.#write(encodeRequest(call.xid, call.request))
  }

  /** An open store does not keep its process running; a call that waits for its answer does. */
  #hold(socket: Socket | undefined): void {
    if (this.#sent.length + this.#waiting.length > 0) socket?.ref?.()
    else socket?.unref?.()
  }

  /** What is asked in one turn of the event loop leaves together: a system call costs more. */
  #write(packet: Buffer): void {
    if (this.#leaving.push(packet) > 1) return
    const socket = this.#socket
    this.clock.defer(() => {
      if (this.#socket === socket) this.#flush()
    })
  }

  #flush(): void {
    const packets = this.#leaving
    this.#leaving = []
    if (packets.length === 0) return
    this.#sentAt = this.clock.now()
    this.#socket?.write(packets.length === 1 ? packets[0]! : Buffer.concat(packets))
  }

  #nextXid(): number {
    this.#xid = this.#xid === XID_MOST ? 1 : this.#xid + 1
    return this.#xid
  }

  /** Comes by regularly: sends pings, gives up a server that is silent and calls that are late. */
  #tick(): void {
    // What was deferred before it was closed must leave the timer of the farewell alone.
    if (this.#isClosed) return
    this.#timer?.cancel()
    const every = this.#pingEvery
    this.#timer = this.clock.timer(this.clock.now() + every / 2, () => {
      // After a stall, what has arrived meanwhile is heard first.
      this.clock.defer(() => {
        this.#inspect(every)
        this.#tick()
      })
    })
  }

  get #pingEvery(): number {
    const timeout = this.timeout || this.#options.patience
    return Math.min(this.#options.pingEvery, timeout / 6)
  }

  #inspect(every: number): void {
    if (this.#isClosed) return
    const now = this.clock.now()
    for (const call of [...this.#sent, ...this.#waiting]) {
      if (call.until > now) break
      this.#fail(call, unanswered(this.#trouble, this.#options.patience))
    }
    this.#waiting = this.#waiting.filter((call) => !call.isOver)
    const silence = Math.max(4 * every, 250)
    if (this.#socket !== undefined && now - this.#heardAt > silence) {
      this.#trouble = `a server was silent for ${Math.round(now - this.#heardAt)} ms`
      const socket = this.#socket
      this.#down()
      socket.destroy()
    } else if (this.#isUp && now - this.#sentAt >= every / 2) {
      this.#write(new JuteWriter().int(XID.ping).int(TYPE.ping).finish())
    }
  }

  #fail(call: Call, error: Error): void {
    if (call.isOver) return
    call.isOver = true
    call.reject(error)
  }

  #unauthenticated(): void {
    const { auth } = this.#options
    this.#fatal = new LeaseholdError(
      'unauthenticated',
      `ZooKeeper does not accept the credentials of the scheme '${auth?.scheme}': correct auth`,
    )
    for (const call of [...this.#sent, ...this.#waiting]) this.#fail(call, this.#fatal)
    void this.close('leave')
  }
}

function shuffled(servers: readonly Server[], random: Random): Server[] {
  const left = [...servers]
  const list: Server[] = []
  while (left.length > 0) list.push(...left.splice(Math.floor(random.next() * left.length), 1))
  return list
}
