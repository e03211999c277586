import type { Clock, Timer } from 'leasehold/port'

/** The options and events of the library's socket that a browser needs. */
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

/** Connects the socket with the page, which shows its state. */
export const link = {
  opened: (): void => {},
  closed: (_reason: string): void => {},
  /** Asks why the stream was refused: a browser does not expose the HTTP status. */
  refusal: async (): Promise<string | undefined> => undefined,
  /** Treats the stream as dead, so that a new one is opened. */
  drop: (): void => {},
}

/** The close code for a missing or revoked access token. */
const UNAUTHENTICATED = 4005
/** A browser buffers without a limit, so the page stops at this many bytes. */
const BUFFERED_MAX = 1 << 20
const DRAIN_MS = 20

/**
 * The client side of the stream in a browser; the build uses it instead of the library's socket. The
 * browser answers pings. A dead server shows as a closed connection.
 */
export class WebSocketClient {
  readonly #socket: WebSocket
  readonly #events: WebSocketEvents
  readonly #clock: Clock
  #timer: Timer | undefined
  #isOpen = false
  #isClosed = false
  /** Whether the page closed it normally. */
  #isLeft = false

  constructor(url: URL, { clock, timeout }: WebSocketOptions, events: WebSocketEvents) {
    this.#events = events
    this.#clock = clock
    const address = new URL(url)
    address.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
    const socket = new WebSocket(address)
    this.#socket = socket
    link.drop = () => this.#end(1006, 'the server was silent')
    this.#timer = clock.timer(clock.now() + timeout, () =>
      this.#end(1006, 'the server did not answer'),
    )
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

  /** Sends a message. Returns false if the buffer is full: then wait for `drained`. */
  send(message: string): boolean {
    if (this.#socket.readyState !== WebSocket.OPEN) return false
    this.#socket.send(message)
    if (this.#socket.bufferedAmount < BUFFERED_MAX) return true
    this.#drainLater()
    return false
  }

  close(code: number, reason: string): void {
    // A browser may send only these codes.
    const allowed = code === 1000 || code >= 3000 ? code : 1000
    if (code === 1000) this.#isLeft = true
    if (!this.#isClosed) this.#socket.close(allowed, reason.slice(0, 100))
  }

  async #closed(code: number, reason: string): Promise<void> {
    if (this.#isOpen || this.#isClosed || this.#isLeft) return this.#end(code, reason)
    const refusal = await link.refusal()
    if (refusal === undefined) this.#end(code, reason || 'the server cannot be reached')
    else this.#end(UNAUTHENTICATED, refusal)
  }

  #end(code: number, reason: string): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#timer?.cancel()
    this.#socket.onclose = null
    if (this.#socket.readyState !== WebSocket.CLOSED) this.#socket.close()
    // The close of an old stream may arrive after the next one is open.
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
