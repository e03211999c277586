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
import {
  type Access,
  type Admission,
  credentialsOf,
  isForeign,
  refuseUpgrade,
} from '../access/index.ts'
import { Connection } from './connection.ts'
import { FairScheduler } from './fair-scheduler.ts'
import type { StreamOptions } from './options.ts'
import { readInPieces } from './short-reads.ts'
import type { StreamDependencies, StreamStats } from './stream-dependencies.ts'
import { TiedLeases } from './tied-leases.ts'

/** The most fragments of one message, as sent and as received: each costs memory. */
const FRAGMENTS_MAX = 64
const CHUNKS_MAX = 16_384
/** How often within a silence period the server looks for silent clients. */
const CHECKS_PER_SILENCE = 3

export interface StreamServerOptions {
  readonly store: LeaseStore
  readonly access: Access
  readonly limits: Limits
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly options: StreamOptions
}

/** The streams of one server: accepts them, checks that they are alive, and closes them. */
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
  readonly #tiedLeases: TiedLeases
  readonly #dependencies: StreamDependencies
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
    this.#tiedLeases = new TiedLeases(store, clock, log)
    const { frameBytes, frameMessages, frameValues, inFlight, watches, silence } = options
    const stream = { frameBytes, frameMessages, frameValues, inFlight, watches, silence }
    const { guarantees } = store
    const welcome: Welcome = { server: random.id(), guarantees, limits, stream }
    this.#dependencies = {
      ...{ clock, log, options, store, tiedLeases: this.#tiedLeases, stats: this.stats },
      scheduler: new FairScheduler(clock),
      welcome: JSON.stringify(['welcome', PROTOCOL, welcome]),
      greeted: (connection, client) => this.#greeted(connection, client),
      left: (connection) => this.#left(connection),
    }
    this.#timer = this.#checkAlive()
  }

  /** Handles an upgrade from the HTTP server. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => socket.destroy())
    const admission = this.#admit(request)
    if (typeof admission === 'string') {
      refuseUpgrade(socket, admission)
      return
    }
    socket.once('close', () => admission.leave())
    readInPieces(socket)
    this.#sockets.handleUpgrade(request, socket, head, (webSocket) => {
      this.accept(webSocket, admission, socket)
    })
  }

  /** Serves an admitted client over an open WebSocket. */
  accept(webSocket: WebSocket, admission: Admission, transport?: Duplex): void {
    const connection = new Connection(webSocket, transport, this.#dependencies, admission)
    this.#connections.add(connection)
    this.stats.connections++
    this.stats.connected++
    const { clock, options } = this.#dependencies
    const greeting = clock.timer(clock.now() + options.greeting, () => {
      if (!connection.greeted) connection.close(CLOSE.malformed, 'no hello was received')
    })
    webSocket.once('close', () => greeting.cancel())
  }

  /** Closes all streams after their calls are answered, or after the drain time. */
  async close(): Promise<void> {
    this.#draining = true
    this.#timer.cancel()
    this.#tiedLeases.stop()
    const drained = Promise.all([...this.#connections].map((connection) => connection.drain()))
    let timer: Timer | undefined
    const late = new Promise<void>((resolve) => {
      timer = this.#clock.timer(this.#clock.now() + this.#options.drain, resolve, true)
    })
    await Promise.race([drained, late])
    timer?.cancel()
    for (const connection of this.#connections) {
      connection.close(CLOSE.goingAway, 'the server is stopping; reconnect')
    }
  }

  /** Admits a client, or returns the status of the refusal. */
  #admit(request: IncomingMessage): Admission | string {
    const { url, headers } = request
    if (url?.split('?')[0] !== STREAM_PATH) return '404 Not Found'
    if (this.#draining || this.#connections.size >= this.#options.connections) {
      return '503 Service Unavailable'
    }
    // A web page must not reach a server through the browser of a user.
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
    older?.close(CLOSE.superseded, 'the same client has reconnected')
  }

  #left(connection: Connection): boolean {
    this.#connections.delete(connection)
    this.stats.connections--
    const { client } = connection
    if (client === undefined || this.#newest.get(client) !== connection) return false
    return this.#newest.delete(client)
  }

  /**
   * Pings silent connections and closes dead ones, several times per silence period. After a stall of
   * this process nobody is closed: what arrived meanwhile was not read, and nobody was pinged.
   */
  #checkAlive(due = this.#clock.now()): Timer {
    const every = this.#options.silence / CHECKS_PER_SILENCE
    const now = this.#clock.now()
    const wasStalled = now - due >= every
    for (const connection of this.#connections) {
      const quiet = now - connection.receivedAt
      if (quiet < every) continue
      const isSilent = quiet >= this.#options.silence && !connection.isPausedByServer
      if (isSilent && !wasStalled) this.#closeIfSilent(connection)
      else connection.ping()
    }
    const next = now + every
    return this.#clock.timer(next, () => {
      this.#timer = this.#checkAlive(next)
    })
  }

  /** Looks once more after reading: a message may have arrived already. */
  #closeIfSilent(connection: Connection): void {
    this.#clock.defer(() => {
      const quiet = this.#clock.now() - connection.receivedAt
      if (quiet < this.#options.silence || connection.isPausedByServer) return
      connection.close(CLOSE.silent, `nothing was received for ${Math.round(quiet)} ms`)
    })
  }
}
