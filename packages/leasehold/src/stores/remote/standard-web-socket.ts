import { byteLength, type Timer } from '../../port/index.ts'
import { ACCESS_TOKEN_PROTOCOL, CLOSE, STREAM_PROTOCOL } from './protocol.ts'
import type { WebSocketEvents, WebSocketOptions } from './web-socket.ts'

/** How long the other side may take to answer our close frame. */
const FAREWELL_MS = 1000
/** Bytes that may wait to be sent, and how often it is read how many do. */
const WAITING_BYTES = 1 << 20
const WAITING_LOOK_MS = 20
/** The longest reason that a close frame can carry. */
const REASON_BYTES = 123
/** A request that costs the server nothing. Nobody waits for answers with the number 0. */
const PING = '[[0,"tie",[]]]'
const BEARER = 'Bearer '

/**
 * The same as `web-socket.ts` with the WebSocket of the runtime. It takes its place in a bundle for
 * browsers and edge workers: see `browser` in package.json.
 *
 * Pages cannot send headers with a WebSocket, so the access token is sent as the name of a
 * subprotocol. They see no pings either: a request shows whether the server is alive.
 */
export class WebSocketClient {
  readonly #options: WebSocketOptions
  readonly #events: WebSocketEvents
  readonly #socket: WebSocket
  #timer: Timer
  #heard = false
  #closed = false
  #leaving = false

  constructor(url: URL, options: WebSocketOptions, events: WebSocketEvents) {
    this.#options = options
    this.#events = events
    const address = new URL(url)
    address.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
    this.#socket = new WebSocket(address, protocolsFor(options.headers))
    this.#timer = this.#after(options.timeout, () =>
      this.#end(1006, `it did not answer within ${options.timeout} ms`),
    )
    this.#socket.onopen = () => {
      this.#timer.cancel()
      this.#listen(false)
      events.opened()
    }
    this.#socket.onmessage = ({ data }) => {
      this.#heard = true
      if (!this.#closed) events.text(String(data))
    }
    // It says nothing, and the close follows. Some runtimes take an error without a listener for a bug.
    this.#socket.onerror = () => {}
    this.#socket.onclose = ({ code, reason }) =>
      this.#end(code, reason || 'the connection was closed or could not be opened')
  }

  /** Sends a string. False if the network is slower than we are: wait for `drained`. */
  send(text: string): boolean {
    this.#socket.send(text)
    if (this.#socket.bufferedAmount <= WAITING_BYTES) return true
    this.#waitForRoom()
    return false
  }

  /** Closes when the other side has answered, or after a while. */
  close(code: number, reason: string): void {
    if (this.#closed || this.#leaving) return
    this.#leaving = true
    this.#timer.cancel()
    this.#timer = this.#after(FAREWELL_MS, () => this.#end(code, reason), true)
    this.#socket.close(code, byteLength(reason) > REASON_BYTES ? '' : reason)
  }

  #waitForRoom(): void {
    this.#after(WAITING_LOOK_MS, () => {
      if (this.#closed) return
      if (this.#socket.bufferedAmount > WAITING_BYTES) this.#waitForRoom()
      else this.#events.drained()
    })
  }

  /** Asks the server for an answer after a silence, and gives it up after a second one. */
  #listen(asked: boolean): void {
    this.#timer = this.#after(this.#options.silence, () => {
      if (this.#heard) this.#listenAgain()
      else if (asked) this.#giveUpUnlessHeard()
      else {
        this.#socket.send(PING)
        this.#listen(true)
      }
    })
  }

  #listenAgain(): void {
    this.#heard = false
    this.#listen(false)
  }

  /** After a stall of this page, an answer may have arrived that was not read yet. */
  #giveUpUnlessHeard(): void {
    const { clock, silence } = this.#options
    clock.defer(() => {
      if (this.#closed || this.#leaving) return
      if (this.#heard) this.#listenAgain()
      else this.#end(1006, `it was silent for ${2 * silence} ms`)
    })
  }

  #end(code: number, reason: string): void {
    if (this.#closed) return
    this.#closed = true
    this.#timer.cancel()
    this.#socket.onopen = null
    this.#socket.onmessage = null
    this.#socket.onclose = null
    if (!this.#leaving) this.#socket.close(CLOSE.done)
    this.#events.closed(code, reason)
  }

  #after(ms: number, run: () => void, keepAlive = false): Timer {
    const { clock } = this.#options
    return clock.timer(clock.now() + ms, run, keepAlive)
  }
}

function protocolsFor(headers: WebSocketOptions['headers'] = {}): string[] {
  const { authorization } = headers
  if (authorization === undefined) return []
  return [STREAM_PROTOCOL, ACCESS_TOKEN_PROTOCOL + authorization.slice(BEARER.length)]
}
