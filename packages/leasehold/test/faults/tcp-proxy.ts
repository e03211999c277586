import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, Socket } from 'node:net'

export type Direction = 'both' | 'to-engine' | 'to-client'
/** The fault of a connection, if any. */
type Fault = Direction | 'broken' | 'no-replies' | undefined

/**
 * A connection between a client and an engine, or between two nodes of an engine, that can be cut.
 * It listens on its own port and forwards all bytes. Its faults:
 * - `cut` a direction: bytes are held back and the connections stay open, as in a network that
 *   drops packets; nobody is notified;
 * - `heal`: the held bytes are delivered late, as in a network that retransmits;
 * - `reset`: the connections break and lose their data, and new ones break at once until `heal`;
 * - `loseReplies`: the engine gets all requests, but its answers are dropped, and after the first
 *   lost answer the connection breaks. This makes an outcome unknown.
 */
export class TcpProxy {
  readonly #server: Server
  readonly #connections = new Set<Connection>()
  #target: { readonly host: string; readonly port: number }
  #fault: Fault
  #lost = 0

  private constructor(server: Server, target: { host: string; port: number }) {
    this.#server = server
    this.#target = target
  }

  static async to(port: number, host = '127.0.0.1'): Promise<TcpProxy> {
    const server = createServer({ allowHalfOpen: true })
    const proxy = new TcpProxy(server, { host, port })
    server.on('connection', (socket) => proxy.#connect(socket))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return proxy
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** How many connections go through it now. */
  get connections(): number {
    return this.#connections.size
  }

  /** How many connections have lost a reply since the proxy was made. */
  get repliesLost(): number {
    return this.#lost
  }

  /** New connections go to another port from now on. Existing ones stay. */
  retarget(port: number): void {
    this.#target = { ...this.#target, port }
  }

  cut(direction: Direction = 'both'): void {
    this.#set(direction)
  }

  loseReplies(): void {
    this.#set('no-replies')
  }

  reset(): void {
    this.#set('broken')
    for (const connection of this.#connections) connection.end()
  }

  heal(): void {
    this.#set(undefined)
  }

  async close(): Promise<void> {
    this.reset()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #set(fault: Fault): void {
    this.#fault = fault
    for (const connection of this.#connections) connection.obey(fault)
  }

  #connect(client: Socket): void {
    if (this.#fault === 'broken') {
      client.resetAndDestroy()
      return
    }
    const connection = new Connection(client, this.#target, () => this.#lost++)
    this.#connections.add(connection)
    connection.obey(this.#fault)
    connection.ended = () => this.#connections.delete(connection)
  }
}

/** One connection through a proxy. */
class Connection {
  ended: () => void = () => {}
  readonly #client: Socket
  readonly #engine: Socket
  readonly #replyLost: () => void
  #dropReplies = false

  constructor(client: Socket, target: { host: string; port: number }, replyLost: () => void) {
    this.#client = client
    this.#replyLost = replyLost
    this.#engine = new Socket({ allowHalfOpen: true })
    for (const [from, to] of [
      [client, this.#engine],
      [this.#engine, client],
    ] as const) {
      from.setNoDelay(true)
      from.on('error', () => this.end())
      from.on('close', () => this.end())
      from.on('end', () => to.end())
    }
    client.on('data', (bytes) => void this.#engine.write(bytes))
    this.#engine.on('data', (bytes) => this.#reply(bytes))
    this.#engine.connect(target.port, target.host)
  }

  obey(fault: Fault): void {
    this.#dropReplies = fault === 'no-replies'
    flow(this.#client, fault !== 'both' && fault !== 'to-engine')
    flow(this.#engine, fault !== 'both' && fault !== 'to-client')
  }

  end(): void {
    this.#client.resetAndDestroy()
    this.#engine.resetAndDestroy()
    this.ended()
  }

  #reply(bytes: Buffer): void {
    if (!this.#dropReplies) {
      this.#client.write(bytes)
      return
    }
    this.#replyLost()
    this.end()
  }
}

function flow(socket: Socket, flows: boolean): void {
  if (flows) socket.resume()
  else socket.pause()
}
