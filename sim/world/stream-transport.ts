import { EventEmitter } from 'node:events'
import { DEFAULT_LIMITS, type LeaseStore, type Limits } from 'leasehold/port'
import {
  CLOSE,
  type OpenSocket,
  type RemoteStoreOptions,
  remoteStore,
  type StreamSocket,
  type WebSocketEvents,
} from 'leasehold/remote'
import type { Network, SimNode } from 'leasehold/testing'
import { DEFAULT_STREAM, StreamServer, type StreamServerOptions } from 'leasehold-server/stream'

type Stream = ReturnType<Network['stream']>

/** The server checks for silent clients often enough to find a cut connection in the world's time. */
const OPTIONS = { ...DEFAULT_STREAM, silence: 3000, greeting: 2000 }
/** How long either end waits for the other to close. */
const CLOSE_TIMEOUT_MS = 1000
const UNNOTICED_MS = 1500

/**
 * Streams between real remote stores and the real stream server, on the simulated network: all of
 * both ends runs but the WebSocket itself.
 */
export class StreamTransport {
  readonly network: Network
  readonly server: SimNode
  readonly #limits: Limits
  readonly #presence = new Map<string, Presence>()
  #serving: StreamServer | undefined
  #store: LeaseStore | undefined

  constructor(network: Network, server: SimNode, limits: Partial<Limits>) {
    this.network = network
    this.server = server
    this.#limits = { ...DEFAULT_LIMITS, ...limits }
  }

  /** The server has a process with an open store. */
  serve(store: LeaseStore): void {
    const clock = this.server.clock()
    const { random } = this.server
    const quiet = (): void => undefined
    const log = { debug: quiet, info: quiet, warn: quiet, error: quiet }
    const made = { store, clock, random, limits: this.#limits, options: OPTIONS }
    // Every client of this transport is already authenticated.
    this.#serving = new StreamServer({
      ...made,
      log,
      access: undefined,
    } as never as StreamServerOptions)
    this.#store = store
  }

  crashed(): void {
    this.#serving = undefined
    this.#store = undefined
  }

  /** A remote store on this client's machine; `name` tells its streams from others. */
  connect(client: SimNode, name: string, tied: RemoteStoreOptions['tied']): Promise<LeaseStore> {
    const linger = typeof tied === 'object' ? (tied.linger as number) : 0
    this.#presence.set(name, new Presence(linger))
    const socket: OpenSocket = (_url, _options, events) => new ClientEnd(this, client, name, events)
    const { random } = client
    const timing = { timeout: 600, silence: 2000, clock: client.clock(), random }
    return remoteStore('http://server', { ...timing, socket, tied })
  }

  /** How much longer a remote store must be away until its leases, granted then, may be revoked. */
  lingers(name: string, grantedFrom: number, serverRate: number): number {
    const presence = this.#presence.get(name)!
    return presence.linger / serverRate - presence.longestAway(grantedFrom, this.network.world.now)
  }

  /** A stream arrives at the server. Returns false if no server runs. */
  accept(end: ServerEnd, name: string): boolean {
    const serving = this.#serving
    const store = this.#store
    if (!serving || !store) return false
    const presence = this.#presence.get(name)!
    const { world } = this.network
    world.note('server', 'has a stream', () => name)
    // A client is present once its hello has arrived.
    end.once('message', () => presence.came(world.now))
    end.on('close', (code: number) => {
      world.note('server', 'ends a stream', () => `${name}: ${code}`)
      // A client that closes does not come back, and nothing lingers.
      presence.left(code === CLOSE.done ? -Infinity : world.now)
    })
    const principal = { name: 'everybody', rights: [], quota: {}, ended: undefined }
    const ownLease = (lease: string) => lease
    const admission = {
      principal,
      store,
      isKnown: false,
      ended: () => {},
      ownLease,
      payload: () => 0,
    }
    serving.accept(end as never, admission as never)
    return true
  }
}

/** When the server had no stream of a remote store. */
class Presence {
  readonly linger: number
  readonly #away: { readonly from: number; until: number }[] = []

  constructor(linger: number) {
    this.linger = linger
  }

  came(now: number): void {
    for (const span of this.#away) span.until = Math.min(span.until, now)
  }

  left(now: number): void {
    this.#away.push({ from: now, until: Infinity })
  }

  longestAway(after: number, now: number): number {
    const spans = this.#away.filter(({ until }) => until > after)
    return Math.max(-Infinity, ...spans.map(({ from, until }) => Math.min(until, now) - from))
  }
}

/** The client's end. It is opened by what the server answers to its first message. */
class ClientEnd implements StreamSocket {
  readonly #transport: StreamTransport
  readonly #node: SimNode
  readonly #events: WebSocketEvents
  readonly #up: Stream
  #over = false

  constructor(transport: StreamTransport, node: SimNode, name: string, events: WebSocketEvents) {
    const { network, server } = transport
    this.#transport = transport
    this.#node = node
    this.#events = events
    const lost = node.guard(() => this.end(1006, 'the connection broke'))
    let far: ServerEnd | undefined
    this.#up = network.stream(node, server, () => {
      lost()
      far?.lostLater()
    })
    this.#up.send(() => {
      far = new ServerEnd(transport, node, this, lost)
      if (!transport.accept(far, name)) far.turnAway()
      else far.tell(() => this.#events.opened())
    })
    this.#send = (receive) => this.#up.send(() => far && receive(far))
  }

  readonly #send: (receive: (far: ServerEnd) => void) => void

  send(text: string): boolean {
    this.#send((far) => far.hear(text))
    return true
  }

  close(code: number, reason: string): void {
    if (this.#over) return
    this.#send((far) => far.leave(code))
    this.#transport.network.world.after(
      CLOSE_TIMEOUT_MS,
      this.#node.guard(() => this.end(code, reason)),
    )
  }

  text(text: string): void {
    if (!this.#over) this.#events.text(text)
  }

  pong(): void {
    this.#send((far) => far.pong())
  }

  end(code: number, reason: string): void {
    if (this.#over) return
    this.#over = true
    this.#up.close()
    this.#events.closed(code, reason)
  }
}

/** The server's end, as much of a WebSocket of `ws` as a connection uses. */
class ServerEnd extends EventEmitter {
  readonly bufferedAmount = 0
  readonly #transport: StreamTransport
  readonly #node: SimNode
  readonly #client: ClientEnd
  readonly #down: Stream
  readonly lost: () => void
  #waiting: string[] = []
  #paused = false
  #over = false

  constructor(transport: StreamTransport, node: SimNode, client: ClientEnd, lost: () => void) {
    super()
    const { network, server } = transport
    this.#transport = transport
    this.#node = node
    this.#client = client
    this.lost = server.guard(() => this.#end(1006))
    this.#down = network.stream(server, node, () => {
      lost()
      this.lostLater()
    })
  }

  /** A server may notice long after its client that a connection is broken, unless the client has died. */
  lostLater(): void {
    const { random } = this.#transport.network.world
    const late = this.#node.running && random.chance(0.5)
    this.#transport.network.world.after(late ? random.between(0, UNNOTICED_MS) : 0, this.lost)
  }

  tell(receive: () => void): void {
    this.#down.send(receive)
  }

  /** No server runs here. The client is notified soon. */
  turnAway(): void {
    const tell = (): void => this.#client.end(1006, 'nobody answers')
    this.#transport.network.world.after(20, tell)
  }

  send(frame: string, left: () => void): void {
    this.tell(() => this.#client.text(frame))
    this.#transport.network.world.after(0, this.#transport.server.guard(left))
  }

  hear(text: string): void {
    if (this.#over) return
    if (this.#paused) this.#waiting.push(text)
    else this.emit('message', Buffer.from(text), false)
  }

  pause(): void {
    this.#paused = true
  }

  resume(): void {
    this.#paused = false
    for (const text of this.#waiting.splice(0)) this.hear(text)
  }

  ping(): void {
    this.tell(() => this.#client.pong())
  }

  pong(): void {
    if (!this.#over) this.emit('pong')
  }

  /** The server says goodbye; it is closed when the client has heard of it, or is cut off. */
  close(code: number, reason: Buffer): void {
    this.tell(() => {
      this.#client.end(code, reason.toString())
      this.#transport.network.world.after(1, this.lost)
    })
  }

  terminate(): void {
    this.#end(1006)
  }

  /** The client has said goodbye. */
  leave(code: number): void {
    this.tell(() => this.#client.end(code, ''))
    this.#end(code)
  }

  #end(code: number): void {
    if (this.#over) return
    this.#over = true
    this.emit('close', code)
  }
}
