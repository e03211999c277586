import { createSocket, type RemoteInfo, type Socket as UdpSocket } from 'node:dgram'
import { once } from 'node:events'
import { type AddressInfo, createServer, isIPv6, type Server, type Socket } from 'node:net'
import { type Clock, LeaseholdError, type Timer } from 'leasehold/port'
import type { Logger } from 'pino'
import type { RegistryView } from '../registry-view/index.ts'
import { AnswerBudget } from './answer-budget.ts'
import { Responder } from './responder.ts'

export interface DnsGatewayOptions {
  readonly view: RegistryView
  readonly clock: Clock
  readonly log: Logger
  readonly host: string
  /** 0 for any free port. */
  readonly port: number
}

export interface DnsGateway {
  /** For UDP and TCP. */
  readonly port: number
  close(): Promise<void>
}

/** The most bytes of an answer over UDP on this machine. The budget limits those to others. */
const LOCAL_DATAGRAM_MAX = 65_507
const MESSAGE_MAX = 65_535
const CONNECTIONS_MAX = 512
/** A connection without a whole query for so long is closed, at the next sweep. */
const IDLE_MS = 10_000
const SWEEP_MS = 1000
/** Unsent answers beyond this are dropped over UDP, and over TCP no more queries are read. */
const UNSENT_MAX = 1024 * 1024
const PORT_ATTEMPTS = 10

/** Serves the registry view as DNS, over UDP and TCP on the same port. It has no access rights. */
export async function startDnsGateway(options: DnsGatewayOptions): Promise<DnsGateway> {
  const { host, port, log } = options
  const answers = new Answers(options)
  const { udp, tcp } = await listen(host, port).catch((error: NodeJS.ErrnoException) => {
    throw new LeaseholdError(
      'invalid-argument',
      `DNS cannot listen on ${host}:${port} (${error.code}). Use another address with --dns`,
    )
  })
  udp.on('message', (bytes, client) => answers.onDatagram(udp, bytes, client))
  udp.on('error', (error) => log.warn({ err: error }, 'DNS over UDP: a socket error'))
  tcp.on('connection', (socket) => answers.onConnection(socket))
  tcp.on('error', (error) => log.warn({ err: error }, 'DNS over TCP: a socket error'))
  return {
    port: udp.address().port,
    close: async () => {
      answers.close()
      await Promise.all([
        new Promise<void>((resolve) => udp.close(resolve)),
        new Promise<void>((resolve) => tcp.close(() => resolve())),
      ])
    },
  }
}

class Answers {
  readonly #responder: Responder
  readonly #budget: AnswerBudget
  readonly #clock: Clock
  readonly #log: Logger
  /** When each connection began that has sent no whole query yet. The oldest is first. */
  readonly #silent = new Map<Socket, number>()
  /** When each of the others sent its last one. */
  readonly #asking = new Map<Socket, number>()
  #sweep: Timer | undefined

  constructor({ view, clock, log }: DnsGatewayOptions) {
    this.#responder = new Responder(view)
    this.#budget = new AnswerBudget(clock)
    this.#clock = clock
    this.#log = log
  }

  onDatagram(udp: UdpSocket, bytes: Buffer, { address, port }: RemoteInfo): void {
    // Nobody can be reached at port 0.
    if (port === 0 || udp.getSendQueueSize() > UNSENT_MAX) return
    const isLocal = isLoopbackAddress(address)
    const limit = isLocal ? LOCAL_DATAGRAM_MAX : this.#budget.limitFor(address)
    if (limit === 0) return
    const answer = this.#answer(bytes, limit, true)
    if (answer === undefined) return
    if (!isLocal) this.#budget.spend(address, answer.length)
    // A client that is gone is no error of ours.
    udp.send(answer, port, address, () => {})
  }

  /** Each message has its length before it. Answers come in the order of the queries. */
  onConnection(socket: Socket): void {
    // Those that only connect must not push out those that ask.
    if (this.#silent.size + this.#asking.size >= CONNECTIONS_MAX) {
      const [oldest] = (this.#silent.size > 0 ? this.#silent : this.#asking).keys()
      this.#end(oldest!)
    }
    this.#silent.set(socket, this.#clock.now())
    this.#sweep ??= this.#sweepLater()
    socket.on('close', () => this.#forget(socket))
    socket.on('error', () => {})
    socket.setNoDelay(true)
    let unread = Buffer.alloc(0)
    const read = () => {
      while (unread.length >= 2 && socket.writableLength <= UNSENT_MAX) {
        const end = 2 + unread.readUInt16BE(0)
        if (unread.length < end) break
        const answer = this.#answer(unread.subarray(2, end), MESSAGE_MAX, false)
        unread = unread.subarray(end)
        if (answer === undefined) {
          socket.destroy()
          return
        }
        socket.write(withLength(answer))
        this.#hasAsked(socket)
      }
      if (socket.writableLength > UNSENT_MAX) socket.pause()
      else if (socket.isPaused()) socket.resume()
    }
    socket.on('data', (chunk) => {
      unread = unread.length === 0 ? chunk : Buffer.concat([unread, chunk])
      read()
    })
    socket.on('drain', read)
  }

  close(): void {
    this.#sweep?.cancel()
    for (const socket of [...this.#silent.keys(), ...this.#asking.keys()]) this.#end(socket)
  }

  #hasAsked(socket: Socket): void {
    this.#forget(socket)
    this.#asking.set(socket, this.#clock.now())
  }

  #forget(socket: Socket): void {
    this.#silent.delete(socket)
    this.#asking.delete(socket)
  }

  #end(socket: Socket): void {
    this.#forget(socket)
    socket.destroy()
  }

  /** Closes what sends no whole query: a byte now and then must not keep a connection open. */
  #sweepLater(): Timer {
    const clock = this.#clock
    return clock.timer(clock.now() + SWEEP_MS, () => {
      const over = clock.now() - IDLE_MS
      for (const connections of [this.#silent, this.#asking]) {
        for (const [socket, since] of connections) {
          if (since > over) break
          this.#end(socket)
        }
      }
      const isIdle = this.#silent.size + this.#asking.size === 0
      this.#sweep = isIdle ? undefined : this.#sweepLater()
    })
  }

  #answer(bytes: Buffer, most: number, isDatagram: boolean): Buffer | undefined {
    try {
      return this.#responder.answer(bytes, most, isDatagram)
    } catch (error) {
      this.#log.error({ err: error }, 'DNS: a query failed')
      return undefined
    }
  }
}

function withLength(message: Buffer): Buffer {
  const framed = Buffer.allocUnsafe(message.length + 2)
  framed.writeUInt16BE(message.length, 0)
  message.copy(framed, 2)
  return framed
}

function isLoopbackAddress(address: string): boolean {
  return /^(::ffff:)?127\./.test(address) || address === '::1'
}

/** Opens both sockets on one port. A free port of one protocol may be in use in the other. */
async function listen(
  host: string,
  port: number,
): Promise<{ readonly udp: UdpSocket; readonly tcp: Server }> {
  for (let attempt = 1; ; attempt++) {
    const udp = createSocket(isIPv6(host) ? 'udp6' : 'udp4')
    const tcp = createServer()
    try {
      tcp.listen(port, host)
      await once(tcp, 'listening')
      const chosen = (tcp.address() as AddressInfo).port
      udp.bind(chosen, host)
      await once(udp, 'listening')
      return { udp, tcp }
    } catch (error) {
      tcp.close()
      udp.close()
      const isTaken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE'
      if (port !== 0 || !isTaken || attempt === PORT_ATTEMPTS) throw error
    }
  }
}
