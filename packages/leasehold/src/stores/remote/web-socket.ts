import { createHash } from 'node:crypto'
import {
  type ClientRequest,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
} from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { Socket } from 'node:net'
import type { SecureContextOptions } from 'node:tls'
import type { Clock, Random, Timer } from '../../port/index.ts'
import {
  closing,
  controlFrame,
  FrameError,
  type FrameEvents,
  FrameReader,
  OPCODE,
  textFrame,
} from './frames.ts'
import { CLOSE } from './protocol.ts'

/** How long the other side may take to answer our close frame. */
const CLOSE_TIMEOUT_MS = 1000
const NOTHING = Buffer.alloc(0)
/** The share of the silence in which an answer arrives if the server is alive. */
const ANSWER_SHARE = 0.2
/** RFC 6455: what the server adds to our key to show that it has understood. */
const SALT = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

export interface WebSocketOptions {
  readonly clock: Clock
  readonly random: Random
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly tls?: SecureContextOptions | undefined
  /** How long the server may take until the stream is open. */
  readonly timeout: number
  /** Bytes in one message from the server. */
  readonly messageBytes: number
  /** After this long without a message, send a ping; after as long again, give up. */
  readonly silence: number
  /** Keeps the process running until the stream is open; an open one never does. */
  readonly keepAlive: boolean
}

export interface WebSocketEvents {
  opened(): void
  text(text: string): void
  /** There is room again, after `send` returned false. */
  drained(): void
  /** Called once, and nothing after it. Before `opened` if the stream could not be opened. */
  closed(code: number, reason: string): void
}

/**
 * The client's end of a WebSocket: as much of one as the stream protocol needs. Node 20 has none, and
 * that of Node 22 has no pings, TLS options or back pressure. It detects a dead server.
 */
export class WebSocketClient {
  readonly #options: WebSocketOptions
  readonly #events: WebSocketEvents
  readonly #request: ClientRequest
  #socket: Socket | undefined
  #timer: Timer
  #masks: Buffer = NOTHING
  #heardAt: number
  #sentAt = -Infinity
  #closed = false
  /** We have sent a close frame. */
  #leaving = false

  constructor(url: URL, options: WebSocketOptions, events: WebSocketEvents) {
    this.#options = options
    this.#events = events
    this.#heardAt = options.clock.now()
    this.#request = this.#ask(url)
    this.#timer = this.#after(options.timeout, () =>
      this.#end(1006, `it did not answer within ${options.timeout} ms`),
    )
  }

  /** Sends a string. False if the network is slower than we are: wait for `drained`. */
  send(text: string): boolean {
    this.#sentAt = this.#options.clock.now()
    return this.#socket?.write(textFrame(text, this.#mask())) ?? false
  }

  /** Sends a close frame, and closes when the other side has answered, or after a while. */
  close(code: number, reason: string): void {
    if (this.#closed || this.#leaving) return
    if (this.#socket === undefined) {
      this.#end(code, reason)
      return
    }
    this.#leaving = true
    this.#control(OPCODE.close, closing(code, reason))
    this.#timer.cancel()
    this.#timer = this.#after(CLOSE_TIMEOUT_MS, () => this.#end(code, reason), true)
  }

  #ask(url: URL): ClientRequest {
    const { headers, tls, keepAlive } = this.#options
    const key = this.#chance().subarray(0, 16).toString('base64')
    const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, {
      ...tls,
      // A separate connection, which no agent reuses.
      agent: false,
      headers: {
        ...headers,
        connection: 'Upgrade',
        upgrade: 'websocket',
        'sec-websocket-key': key,
        'sec-websocket-version': '13',
      },
    })
    request.on('upgrade', (response, socket, head) => this.#open(key, response, socket, head))
    request.on('response', (response) => {
      const { statusCode, headers: answered } = response
      response.resume()
      if (statusCode === 401) this.#end(CLOSE.unauthenticated, refusalIn(answered))
      else this.#end(1006, `it answered with ${statusCode} instead of a stream`)
    })
    request.on('error', (error) => this.#end(1006, said(error)))
    if (!keepAlive) request.on('socket', (socket) => socket.unref())
    request.end()
    return request
  }

  #open(key: string, response: IncomingMessage, socket: Socket, head: Buffer): void {
    const expected = createHash('sha1')
      .update(key + SALT)
      .digest('base64')
    if (response.headers['sec-websocket-accept'] !== expected || this.#closed) {
      socket.destroy()
      this.#end(1006, 'it does not speak WebSocket')
      return
    }
    this.#socket = socket
    socket.setNoDelay(true)
    socket.unref()
    const reader = new FrameReader(this.#frameEvents(), this.#options.messageBytes)
    socket.on('data', (bytes) => this.#hear(reader, bytes))
    socket.on('drain', () => this.#events.drained())
    socket.on('error', (error) => this.#end(1006, said(error)))
    socket.on('close', () => this.#end(1006, 'the connection was closed'))
    this.#heardAt = this.#options.clock.now()
    this.#timer.cancel()
    this.#listen(false)
    this.#events.opened()
    this.#hear(reader, head)
  }

  #hear(reader: FrameReader, bytes: Buffer): void {
    this.#heardAt = this.#options.clock.now()
    try {
      reader.read(bytes)
    } catch (error) {
      // Whatever the server sends, it must not end the client's process.
      const code = error instanceof FrameError ? error.code : CLOSE.malformed
      const { message } = error as Error
      this.#control(OPCODE.close, closing(code, message))
      this.#end(code, `it sent what cannot be read: ${message}`)
    }
  }

  #frameEvents(): FrameEvents {
    return {
      text: (text) => {
        if (!this.#closed) this.#events.text(text)
      },
      ping: (content) => {
        // A server that does not read must not fill our memory with pongs.
        if (!this.#socket!.writableNeedDrain) this.#control(OPCODE.pong, content)
      },
      pong: () => {},
      close: (code, reason) => {
        if (!this.#leaving) this.#control(OPCODE.close, closing(code === 1005 ? 1000 : code, ''))
        this.#end(code, reason)
      },
    }
  }

  /**
   * Checks after a while whether a message has arrived. If something was sent a moment ago, its answer
   * gets time to arrive: a heartbeat with the interval of our silence limit is enough, and must not
   * cost a ping each time as well.
   */
  #listen(asked: boolean, wait = this.#options.silence): void {
    const { clock, silence } = this.#options
    const since = this.#heardAt
    const from = asked ? clock.now() : since
    this.#timer = clock.timer(from + wait, () => {
      const answerDue = this.#sentAt + silence * ANSWER_SHARE
      if (this.#heardAt > since) this.#listen(false)
      else if (asked) this.#giveUpUnlessHeard(since)
      else if (wait === silence && answerDue > clock.now()) this.#listen(false, answerDue - since)
      else {
        this.#control(OPCODE.ping, NOTHING)
        this.#listen(true)
      }
    })
  }

  /** After a stall of this process, an answer may have arrived that was not read yet. */
  #giveUpUnlessHeard(since: number): void {
    const { clock, silence } = this.#options
    clock.defer(() => {
      if (this.#closed || this.#leaving) return
      if (this.#heardAt > since) this.#listen(false)
      else this.#end(1006, `it was silent for ${2 * silence} ms`)
    })
  }

  #control(opcode: number, content: Buffer): void {
    if (!this.#closed) this.#socket!.write(controlFrame(opcode, content, this.#mask()))
  }

  #end(code: number, reason: string): void {
    if (this.#closed) return
    this.#closed = true
    this.#timer.cancel()
    if (this.#socket === undefined) this.#request.destroy()
    else this.#destroySoon(this.#socket)
    this.#events.closed(code, reason)
  }

  /** The last write, our close frame, is still sent; but we do not wait for it for long. */
  #destroySoon(socket: Socket): void {
    socket.destroySoon()
    this.#after(CLOSE_TIMEOUT_MS, () => socket.destroy())
  }

  /** An unpredictable mask, as the standard requires. */
  #mask(): number {
    if (this.#masks.length < 4) this.#masks = this.#chance()
    const mask = this.#masks.readInt32LE(0)
    this.#masks = this.#masks.subarray(4)
    return mask
  }

  #chance(): Buffer {
    return createHash('sha256').update(this.#options.random.id()).digest()
  }

  #after(ms: number, run: () => void, keepAlive = false): Timer {
    const { clock } = this.#options
    return clock.timer(clock.now() + ms, run, keepAlive)
  }
}

/** If several addresses were tried, the error itself has no message. */
function said(error: Error & { readonly errors?: readonly Error[] }): string {
  return error.message || (error.errors ?? []).map(({ message }) => message).join(', ')
}

/** Why the server rejects us. */
function refusalIn(headers: IncomingHttpHeaders): string {
  const said = /error_description="([^"]*)"/.exec(headers['www-authenticate'] ?? '')?.[1]
  return said ?? 'the server requires an access token'
}
