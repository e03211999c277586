import type { Clock, Timer } from '../../../port/index.ts'
import { JuteReader, packet, ZERO } from './jute.ts'
import { KeeperFault, type Request } from './requests.ts'

/** A socket of `node:net` or `node:tls`. */
export interface Socket {
  write(bytes: Uint8Array): unknown
  destroy(): unknown
  on(event: 'connect' | 'close', listener: () => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'data', listener: (bytes: Buffer) => void): unknown
  setNoDelay?(): unknown
  ref?(): unknown
  unref?(): unknown
}

/** The scheme `digest` has `user:password` as credentials. */
export interface Auth {
  readonly scheme: string
  readonly credentials: string
}

export interface ConnectionOptions {
  readonly socket: Socket
  readonly auth: Auth | undefined
  readonly clock: Clock
  /** A server that sends nothing for so many milliseconds has failed; can be changed later. */
  readonly silence: number
  created(path: string): void
  /** Called once, when the connection cannot be used any more. */
  closed(error: Error): void
}

const XID = { event: -1, ping: -2, auth: -4 } as const
const TYPE = { ping: 11, auth: 100, close: -11 } as const
const CREATED = 1
const XID_MAX = 0x7fff_ffff
/** The server removes a session after so long without contact. */
const SESSION_MS = 10_000

interface Call {
  readonly xid: number
  readonly request: Request<unknown>
  resolve(answer: never): void
  reject(error: Error): void
}

/**
 * One connection to one server. The server answers requests in the order in which they were sent. When
 * the connection breaks, all open requests are rejected: they may have been carried out.
 */
export class Connection {
  readonly #options: ConnectionOptions
  readonly #socket: Socket
  silence: number
  /** Fulfilled when the server has accepted the session. */
  readonly ready: Promise<void>
  #isReady!: () => void
  #rest: Buffer = Buffer.alloc(0)
  #calls: Call[] = []
  #xid = 0
  #isUp = false
  #receivedAt: number
  #timer: Timer
  #failure: Error | undefined

  constructor(options: ConnectionOptions) {
    this.#options = options
    const { socket, clock, silence } = options
    this.silence = silence
    this.#socket = socket
    this.#receivedAt = clock.now()
    this.ready = new Promise((resolve, reject) => {
      this.#isReady = resolve
      socket.on('close', () => {
        this.fail(new Error('the connection was closed'))
        reject(this.#failure)
      })
    })
    this.ready.catch(() => {})
    socket.setNoDelay?.()
    // Starts a new session. The last seen zxid is 0: a restored server would refuse a higher one.
    const session = [...ZERO, Buffer.alloc(16), { flag: false }]
    socket.on('connect', () =>
      socket.write(packet({ int: 0 }, ...ZERO, { int: SESSION_MS }, ...session)),
    )
    socket.on('data', (bytes) => this.#receive(bytes))
    socket.on('error', (error) => this.fail(error))
    this.#timer = this.#schedulePing()
  }

  call<Answer>(request: Request<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#failure) return reject(this.#failure)
      this.#xid = this.#xid === XID_MAX ? 1 : this.#xid + 1
      if (this.#calls.push({ xid: this.#xid, request, resolve, reject }) === 1) {
        this.#socket.ref?.()
      }
      this.#socket.write(packet({ int: this.#xid }, { int: request.type }, ...request.fields))
    })
  }

  /** Ends the session, so that the server need not wait until it expires. */
  close(): void {
    if (this.#isUp) this.#socket.write(packet({ int: this.#xid + 1 }, { int: TYPE.close }))
    this.fail(new Error('the client was closed'))
  }

  fail(error: Error): void {
    if (this.#failure) return
    this.#failure = error
    this.#timer.cancel()
    this.#socket.destroy()
    for (const call of this.#calls.splice(0)) call.reject(error)
    this.#options.closed(error)
  }

  #receive(bytes: Buffer): void {
    this.#receivedAt = this.#options.clock.now()
    let rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes])
    try {
      while (rest.length >= 4 && rest.length >= 4 + rest.readInt32BE(0)) {
        const end = 4 + rest.readInt32BE(0)
        const reader = new JuteReader(rest.subarray(4, end))
        rest = rest.subarray(end)
        if (this.#isUp) this.#packet(reader)
        else this.#sessionAccepted(reader)
      }
    } catch (error) {
      this.fail(error as Error)
    }
    this.#rest = rest
  }

  #sessionAccepted(reader: JuteReader): void {
    reader.int()
    if (reader.int() <= 0) throw new Error('the server did not accept a session')
    this.#isUp = true
    const { auth } = this.#options
    if (auth) {
      const fields = [{ int: 0 }, auth.scheme, auth.credentials]
      this.#socket.write(packet({ int: XID.auth }, { int: TYPE.auth }, ...fields))
    }
    if (this.#calls.length === 0) this.#socket.unref?.()
    this.#isReady()
  }

  #packet(reader: JuteReader): void {
    const xid = reader.int()
    reader.skip(8)
    const code = reader.int()
    if (xid === XID.event) {
      const type = reader.int()
      reader.int()
      if (type === CREATED) this.#options.created(reader.string())
    } else if (xid === XID.auth && code !== 0) throw new KeeperFault(code)
    else if (xid > 0) this.#answer(xid, code, reader)
  }

  #answer(xid: number, code: number, reader: JuteReader): void {
    const call = this.#calls.shift()
    if (call?.xid !== xid) throw new Error('the server answered a request that was not sent')
    if (this.#calls.length === 0) this.#socket.unref?.()
    try {
      if (code !== 0) throw new KeeperFault(code)
      call.resolve(call.request.read(reader) as never)
    } catch (error) {
      call.reject(error as Error)
    }
  }

  /** Sends a ping regularly, and fails if the server has sent nothing for too long. */
  #schedulePing(): Timer {
    const { clock } = this.#options
    return clock.timer(clock.now() + this.silence / 3, () =>
      // After a stall, read what has already arrived first.
      clock.defer(() => {
        if (this.#failure) return
        if (clock.now() - this.#receivedAt > this.silence) {
          return this.fail(new Error(`the server sent nothing for ${this.silence} ms`))
        }
        if (this.#isUp) this.#socket.write(packet({ int: XID.ping }, { int: TYPE.ping }))
        this.#timer = this.#schedulePing()
      }),
    )
  }
}
