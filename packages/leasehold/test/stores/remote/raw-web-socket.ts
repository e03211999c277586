import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { WebSocketClient, type WebSocketOptions } from '../../../src/stores/remote/web-socket.ts'
import { SeededRandom } from '../../../src/testing/index.ts'
import { RunningClock } from './running-clock.ts'

/** A frame that a client sent. */
export class Frame {
  readonly opcode: number
  readonly mask: number
  readonly #masked: Buffer

  constructor(opcode: number, mask: number, masked: Buffer) {
    this.opcode = opcode
    this.mask = mask
    this.#masked = masked
  }

  get content(): Buffer {
    const mask = Buffer.alloc(4)
    mask.writeInt32LE(this.mask)
    return Buffer.from(this.#masked.map((byte, at) => byte ^ mask[at & 3]!))
  }
}

/** The complete frames in a client's bytes. */
function framesIn(bytes: Buffer): Frame[] {
  const frames: Frame[] = []
  for (let at = 0; at + 2 <= bytes.length; ) {
    const short = bytes[at + 1]! & 0x7f
    const start = at + (short === 127 ? 14 : short === 126 ? 8 : 6)
    if (bytes.length < start) break
    let end = start + short
    if (short === 126) end = start + bytes.readUInt16BE(at + 2)
    if (short === 127) end = start + Number(bytes.readBigUInt64BE(at + 2))
    if (bytes.length < end) break
    const mask = bytes.readInt32LE(start - 4)
    frames.push(new Frame(bytes[at]! & 0x0f, mask, bytes.subarray(start, end)))
    at = end
  }
  return frames
}

/** The answer to a request for a WebSocket. */
export function accepting({ headers }: IncomingMessage): string {
  const salt = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
  const accept = createHash('sha1')
    .update(`${headers['sec-websocket-key']}${salt}`)
    .digest('base64')
  const lines = ['HTTP/1.1 101 Switching Protocols', 'connection: upgrade', 'upgrade: websocket']
  return `${lines.join('\r\n')}\r\nsec-websocket-accept: ${accept}\r\n\r\n`
}

type Answer = (request: IncomingMessage, socket: Socket) => void

/** A server whose raw connections the test controls: it sends every byte of the answers. */
export class RawServer {
  readonly #server: Server
  /** Handles a request for a WebSocket. */
  answer: Answer = (request, socket) => void socket.write(accepting(request))
  #wake = () => {}
  #arrived: { request: IncomingMessage; socket: Socket; end: ServerEnd }[] = []

  private constructor(server: Server) {
    this.#server = server
    server.on('upgrade', (request, socket: Socket) => {
      this.#arrived.push({ request, socket, end: new ServerEnd(socket, () => this.#wake()) })
      this.answer(request, socket)
      this.#wake()
    })
  }

  static async start(server: Server = createServer()): Promise<RawServer> {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return new RawServer(server)
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  close(): void {
    for (const { socket } of this.#arrived) socket.destroy()
    this.#server.close()
    this.#server.closeAllConnections()
  }

  /** Waits until a condition holds. Checks it after everything that happens at either end. */
  async until(isSo: () => boolean): Promise<void> {
    while (!isSo()) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  /** A client that connects, with a test clock. */
  connect(options: Partial<WebSocketOptions> = {}, url = `http://127.0.0.1:${this.port}/stream`) {
    const clock = new RunningClock()
    const heard = {
      opened: 0,
      drained: 0,
      texts: [] as string[],
      closed: [] as [code: number, reason: string][],
    }
    const limits = { timeout: 5000, messageBytes: 1 << 20, silence: 60_000, keepAlive: true }
    const client = new WebSocketClient(
      new URL(url),
      { clock, random: new SeededRandom(1), ...limits, ...options },
      {
        opened: () => this.#heard(() => heard.opened++),
        text: (text) => this.#heard(() => heard.texts.push(text)),
        drained: () => this.#heard(() => heard.drained++),
        closed: (code, reason) => this.#heard(() => heard.closed.push([code, reason])),
      },
    )
    return { clock, client, heard }
  }

  #heard(note: () => void): void {
    note()
    this.#wake()
  }

  /** The same; returns both ends when it is open. */
  async open(options: Partial<WebSocketOptions> = {}) {
    const { length } = this.#arrived
    const made = this.connect(options)
    await this.until(() => made.heard.opened > 0)
    const { request, socket, end } = this.#arrived[length]!
    return { ...made, request, socket, end }
  }

  /** The last request for a WebSocket, and the connection that it came on. */
  async arrived() {
    await this.until(() => this.#arrived.length > 0)
    return this.#arrived.at(-1)!
  }
}

/** The server's end of one connection. */
export class ServerEnd {
  readonly #pieces: Buffer[] = []
  /** The client sends nothing more. */
  isOver = false

  constructor(socket: Socket, wake: () => void) {
    socket.on('data', (piece) => {
      this.#pieces.push(piece)
      wake()
    })
    socket.on('error', () => {})
    // The client's half is closed; or all of it is, if the connection broke.
    for (const event of ['end', 'close']) {
      socket.on(event, () => {
        this.isOver = true
        wake()
      })
    }
  }

  get received(): Buffer {
    return Buffer.concat(this.#pieces)
  }

  get frames(): Frame[] {
    return framesIn(this.received)
  }

  /** The kinds of the received frames, in order. */
  get opcodes(): number[] {
    return this.frames.map(({ opcode }) => opcode)
  }
}
