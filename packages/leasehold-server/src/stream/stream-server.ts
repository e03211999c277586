import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import {
  type Clock,
  isLeaseholdError,
  type LeaseStore,
  type Limits,
  type Random,
  type Timer,
} from 'leasehold/port'
import { CLOSE, PROTOCOL, STREAM_PATH, type Welcome } from 'leasehold/remote'
import type { Logger } from 'pino'
import { type WebSocket, WebSocketServer } from 'ws'
import { type Access, type Admission, credentialsOf, isForeign, turnAway } from '../access/index.ts'
import { Connection } from './connection.ts'
import type { StreamOptions } from './options.ts'
import type { StreamStats, Surroundings } from './surroundings.ts'
import { Ties } from './ties.ts'
import { Turns } from './turns.ts'

/** Pieces of one message, as its client sent them and as they arrived: each costs memory. */
const FRAGMENTS_MAX = 64
const CHUNKS_MAX = 16_384

export interface StreamServerOptions {
  readonly store: LeaseStore
  readonly access: Access
  readonly limits: Limits
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly options: StreamOptions
}

/** The streams of one server: takes them in, looks whether they still live, and ends them. */
export class StreamServer {
  readonly stats: StreamStats = {
    connections: 0,
    connected: 0,
    requests: 0,
    notices: 0,
    dropped: 0,
    malformed: 0,
  }
  readonly #access: Access
  readonly #clock: Clock
  readonly #options: StreamOptions
  readonly #sockets: WebSocketServer
  readonly #ties: Ties
  readonly #around: Surroundings
  readonly #connections = new Set<Connection>()
  readonly #newest = new Map<string, Connection>()
  #timer: Timer
  #draining = false

  constructor(made: StreamServerOptions) {
    const { store, access, limits, clock, random, log, options } = made
    this.#access = access
    this.#clock = clock
    this.#options = options
    this.#sockets = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: options.frameBytes,
      maxFragments: FRAGMENTS_MAX,
      maxBufferedChunks: CHUNKS_MAX,
      autoPong: false,
    })
    this.#ties = new Ties(store, clock, log)
    const { frameBytes, frameMessages, frameValues, inFlight, watches, silence } = options
    const stream = { frameBytes, frameMessages, frameValues, inFlight, watches, silence }
    const { guarantees } = store
    const welcome: Welcome = { server: random.id(), guarantees, limits, stream }
    this.#around = {
      ...{ clock, log, options, store, ties: this.#ties, stats: this.stats },
      turns: new Turns(clock),
      welcome: JSON.stringify(['welcome', PROTOCOL, welcome]),
      greeted: (connection, client) => this.#greeted(connection, client),
      left: (connection) => this.#left(connection),
    }
    this.#timer = this.#look()
  }

  /** Takes the connection over from the HTTP server. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => socket.destroy())
    const admission = this.#admit(request)
    if (typeof admission === 'string') {
      turnAway(socket, admission)
      return
    }
    socket.once('close', () => admission.leave())
    this.#sockets.handleUpgrade(request, socket, head, (webSocket) => {
      this.accept(webSocket, admission)
    })
  }

  /** Serves a client that was let in, over a WebSocket that is open. */
  accept(webSocket: WebSocket, admission: Admission): void {
    const connection = new Connection(webSocket, this.#around, admission)
    this.#connections.add(connection)
    this.stats.connections++
    this.stats.connected++
    const { clock, options } = this.#around
    const greeting = clock.timer(clock.now() + options.greeting, () => {
      if (!connection.greeted) connection.close(CLOSE.malformed, 'there was no hello')
    })
    webSocket.once('close', () => greeting.cancel())
  }

  /** Ends all streams, when what is under way has been answered, or is late. */
  async close(): Promise<void> {
    this.#draining = true
    this.#timer.cancel()
    this.#ties.stop()
    const drained = Promise.all([...this.#connections].map((connection) => connection.drain()))
    let timer: Timer | undefined
    const late = new Promise<void>((resolve) => {
      timer = this.#clock.timer(this.#clock.now() + this.#options.drain, resolve, true)
    })
    await Promise.race([drained, late])
    timer?.cancel()
    for (const connection of this.#connections) {
      connection.close(CLOSE.goingAway, 'the server stops: connect again')
    }
  }

  /** Lets a client in, or says with which status it is turned away. */
  #admit(request: IncomingMessage): Admission | string {
    const { url, headers } = request
    if (url?.split('?')[0] !== STREAM_PATH) return '404 Not Found'
    if (this.#draining || this.#connections.size >= this.#options.connections) {
      return '503 Service Unavailable'
    }
    // A page in somebody's browser must not reach a server that only their machine can.
    if (isForeign(headers)) return '403 Forbidden'
    try {
      return this.#access.admit(credentialsOf(request))
    } catch (error) {
      if (isLeaseholdError(error, 'forbidden')) return '403 Forbidden'
      const { message } = error as Error
      const said = message.replaceAll('"', "'").replaceAll(/[^ -~]/g, '?')
      return `401 Unauthorized\r\nwww-authenticate: Bearer error_description="${said}"`
    }
  }

  #greeted(connection: Connection, client: string): void {
    const older = this.#newest.get(client)
    this.#newest.set(client, connection)
    older?.close(CLOSE.superseded, 'the same client has connected again')
  }

  #left(connection: Connection): boolean {
    this.#connections.delete(connection)
    this.stats.connections--
    const { client } = connection
    if (client === undefined || this.#newest.get(client) !== connection) return false
    return this.#newest.delete(client)
  }

  /** One look at all of them, twice in the time for which a client may be silent. */
  #look(): Timer {
    const { silence } = this.#options
    const now = this.#clock.now()
    for (const connection of this.#connections) {
      const quiet = now - connection.heardAt
      if (quiet >= silence && !connection.isHeldUp) {
        connection.close(CLOSE.silent, `nothing was heard for ${Math.round(quiet)} ms`)
      } else if (quiet >= silence / 3) connection.ping()
    }
    return this.#clock.timer(now + silence / 3, () => {
      this.#timer = this.#look()
    })
  }
}
