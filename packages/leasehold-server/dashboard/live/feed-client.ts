import type {
  FeedMessage,
  FeedRequest,
  Sample,
  ServerState,
} from '../../src/dashboard/feed-messages.ts'
import { changed } from './frames.ts'

const PATH = '/dashboard/feed'
const RETRY_MIN_MS = 250
const RETRY_MAX_MS = 5000
/** The server sends every second. After this silence it is gone, even if the socket seems open. */
const SILENCE_MS = 6000
const KEPT = 600

export interface FeedEvents {
  heartbeat(lease: string, at: number): void
  /** The current time on the server's clock. */
  time(at: number): void
  /** The server sent nothing for too long. */
  silent(): void
}

/** Receives the server's metrics once a second, and the heartbeats of the visible leases. */
export class FeedClient {
  samples: Sample[] = []
  state: ServerState | undefined
  readonly #events: FeedEvents
  #socket: WebSocket | undefined
  #followed: readonly string[] = []
  #failures = 0
  #isOver = false
  #silence: ReturnType<typeof setTimeout> | undefined

  constructor(events: FeedEvents) {
    this.#events = events
  }

  open(): void {
    if (this.#socket !== undefined) return
    this.#isOver = false
    const socket = new WebSocket(
      `${location.protocol.replace('http', 'ws')}//${location.host}${PATH}`,
    )
    this.#socket = socket
    socket.onopen = () => {
      this.#failures = 0
      this.#sendFollowed()
    }
    socket.onmessage = ({ data }) => {
      if (this.#socket !== socket) return
      this.#expectMessage(socket)
      this.#receive(JSON.parse(data as string) as FeedMessage)
    }
    socket.onclose = () => this.#closed(socket)
  }

  /** Closes the feed. The received samples stay visible. */
  close(): void {
    const socket = this.#socket
    this.#isOver = true
    // Do not wait for the close: a dead peer answers it late.
    this.#socket = undefined
    socket?.close()
    clearTimeout(this.#silence)
  }

  /** Deletes the samples: the next user may not have the right to see them. */
  forget(): void {
    this.samples = []
    this.state = undefined
  }

  follow(leases: readonly string[]): void {
    this.#followed = leases
    if (this.#socket?.readyState === WebSocket.OPEN) this.#sendFollowed()
  }

  #sendFollowed(): void {
    const request: FeedRequest = { leases: this.#followed }
    this.#socket?.send(JSON.stringify(request))
  }

  #receive(message: FeedMessage): void {
    if (message.type === 'history') this.samples = [...message.samples]
    else if (message.type === 'heartbeats') {
      for (const [lease, at] of message.heartbeats) this.#events.heartbeat(lease, at)
    } else {
      this.samples.push(message.sample)
      if (this.samples.length > KEPT) this.samples.shift()
      this.state = message.state
      this.#events.time(message.sample.at)
    }
    changed()
  }

  #expectMessage(socket: WebSocket): void {
    clearTimeout(this.#silence)
    this.#silence = setTimeout(() => {
      // A suspended tab receives its messages when it wakes.
      if (document.hidden) {
        this.#expectMessage(socket)
        return
      }
      socket.close()
      this.#closed(socket)
      this.#events.silent()
    }, SILENCE_MS)
  }

  #closed(socket: WebSocket): void {
    if (this.#socket !== socket) return
    this.#socket = undefined
    clearTimeout(this.#silence)
    if (this.#isOver) return
    const delay = Math.min(RETRY_MIN_MS * 2 ** this.#failures++, RETRY_MAX_MS)
    setTimeout(() => {
      if (!this.#isOver) this.open()
    }, delay)
    changed()
  }
}
