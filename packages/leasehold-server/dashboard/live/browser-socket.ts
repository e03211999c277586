import type { Clock, Timer } from 'leasehold/port'

/** As much of the options and events of the library's own socket as a browser needs. */
export interface WebSocketOptions {
  readonly clock: Clock
  readonly timeout: number
  readonly silence: number
}

export interface WebSocketEvents {
  opened(): void
  text(text: string): void
  drained(): void
  closed(code: number, reason: string): void
}

/** What became of the stream, for the page to show. */
export const link = {
  opened: (): void => {},
  closed: (_reason: string): void => {},
  /** Why there may be no stream: a browser does not say with which status it was turned away. */
  refusal: async (): Promise<string | undefined> => undefined,
  /** Gives the stream up as dead, so that another is opened. */
  drop: (): void => {},
}

/** Code of a close for those whom the server does not know (any more). */
const UNAUTHENTICATED = 4005
/** A browser buffers without end: more than this is not handed to it at a time. */
const BUFFERED_MAX = 1 << 20
const DRAIN_MS = 20

/**
 * The client's end of the stream in a browser, in the place of the library's own. Pings are answered
 * by the browser; whether the server is still there shows by the closing of the connection.
 */
export class WebSocketClient {
  readonly #socket: WebSocket
  readonly #events: WebSocketEvents
  readonly #clock: Clock
  #timer: Timer | undefined
  #isOpen = false
  #isClosed = false
  /** It was closed from here, and is none that the page lives by any more. */
  #isLeft = false

  constructor(url: URL, { clock, timeout }: WebSocketOptions, events: WebSocketEvents) {
    this.#events = events
    this.#clock = clock
    const address = new URL(url)
    address.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
    const socket = new WebSocket(address)
    this.#socket = socket
    link.drop = () => this.#end(1006, 'nothing was heard of it')
    this.#timer = clock.timer(clock.now() + timeout, () => this.#end(1006, 'it did not answer'))
    socket.onopen = () => {
      this.#timer?.cancel()
      this.#isOpen = true
      link.opened()
      events.opened()
    }
    socket.onmessage = ({ data }) => {
      if (!this.#isClosed) events.text(data as string)
    }
    socket.onclose = ({ code, reason }) => void this.#closed(code, reason)
  }

  /** Sends a text. False where more waits than should: wait for `drained`. */
  send(text: string): boolean {
    if (this.#socket.readyState !== WebSocket.OPEN) return false
    this.#socket.send(text)
    if (this.#socket.bufferedAmount < BUFFERED_MAX) return true
    this.#drainLater()
    return false
  }

  close(code: number, reason: string): void {
    // A browser may say no other codes than these.
    const allowed = code === 1000 || code >= 3000 ? code : 1000
    if (code === 1000) this.#isLeft = true
    if (!this.#isClosed) this.#socket.close(allowed, reason.slice(0, 100))
  }

  async #closed(code: number, reason: string): Promise<void> {
    if (this.#isOpen || this.#isClosed || this.#isLeft) return this.#end(code, reason)
    const refusal = await link.refusal()
    if (refusal === undefined) this.#end(code, reason || 'the server was not reached')
    else this.#end(UNAUTHENTICATED, refusal)
  }

  #end(code: number, reason: string): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#timer?.cancel()
    this.#socket.onclose = null
    if (this.#socket.readyState !== WebSocket.CLOSED) this.#socket.close()
    // Its goodbye may be answered when the next stream is open, which is not closed by that.
    if (!this.#isLeft) link.closed(reason)
    this.#events.closed(code, reason)
  }

  #drainLater(): void {
    this.#clock.timer(this.#clock.now() + DRAIN_MS, () => {
      if (this.#isClosed) return
      if (this.#socket.bufferedAmount >= BUFFERED_MAX) this.#drainLater()
      else this.#events.drained()
    })
  }
}
