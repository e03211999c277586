import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, Socket } from 'node:net'

export type Direction = 'both' | 'to-engine' | 'to-client'
/** What is wrong with a line, if anything. */
type Trouble = Direction | 'broken' | 'no-replies' | undefined

/**
 * A line between a client and an engine, or between two nodes of one, that can be cut. It listens on
 * a port of its own and hands on what it gets, and can
 * - `cut` a direction: bytes are kept back and the connections stay open, as in a network that drops
 *   packets; nobody is told anything;
 * - `heal`: what was kept back is delivered, late, as a network does that sends again;
 * - `reset`: the connections break, with what was under way, and new ones break at once until `heal`;
 * - `loseReplies`: the engine gets what is sent, its answers are thrown away, and after the first
 *   that was lost the connection breaks. This is how an outcome becomes unknown.
 */
export class TcpProxy {
  readonly #server: Server
  readonly #lines = new Set<Line>()
  #target: { readonly host: string; readonly port: number }
  #trouble: Trouble
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
    return this.#lines.size
  }

  /** How many connections have lost a reply since the proxy was made. */
  get repliesLost(): number {
    return this.#lost
  }

  /** New connections go to another port from now on. Those there are stay. */
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
    for (const line of this.#lines) line.end()
  }

  heal(): void {
    this.#set(undefined)
  }

  async close(): Promise<void> {
    this.reset()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #set(trouble: Trouble): void {
    this.#trouble = trouble
    for (const line of this.#lines) line.obey(trouble)
  }

  #connect(client: Socket): void {
    if (this.#trouble === 'broken') {
      client.resetAndDestroy()
      return
    }
    const line = new Line(client, this.#target, () => this.#lost++)
    this.#lines.add(line)
    line.obey(this.#trouble)
    line.ended = () => this.#lines.delete(line)
  }
}

/** One connection through a proxy. */
class Line {
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

  obey(trouble: Trouble): void {
    this.#dropReplies = trouble === 'no-replies'
    flow(this.#client, trouble !== 'both' && trouble !== 'to-engine')
    flow(this.#engine, trouble !== 'both' && trouble !== 'to-client')
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
