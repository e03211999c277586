import type { FeedMessage, FeedRequest, Sample, State } from '../../src/dashboard/sample.ts'
import { changed } from './frames.ts'

const PATH = '/dashboard/feed'
const REST_MIN_MS = 250
const REST_MAX_MS = 5000
/** The server tells something every second: after so long it is gone, whatever the browser thinks. */
const SILENCE_MS = 6000
const KEPT = 600

export interface FeedEvents {
  beat(lease: string, at: number): void
  /** The server's clock, as of now. */
  time(at: number): void
  /** Nothing was heard for too long. */
  silent(): void
}

/** The server's own figures, one sample a second, and the heartbeats of what is looked at. */
export class FeedClient {
  samples: Sample[] = []
  state: State | undefined
  readonly #events: FeedEvents
  #socket: WebSocket | undefined
  #wanted: readonly string[] = []
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
      this.#say()
    }
    socket.onmessage = ({ data }) => {
      if (this.#socket !== socket) return
      this.#listen(socket)
      this.#hear(JSON.parse(data as string) as FeedMessage)
    }
    socket.onclose = () => this.#closed(socket)
  }

  /** Ends the feed. What it has told stays, as how things were. */
  close(): void {
    const socket = this.#socket
    this.#isOver = true
    // At once: a peer that is gone does not answer the close for a long time.
    this.#socket = undefined
    socket?.close()
    clearTimeout(this.#silence)
  }

  /** Forgets what was told: the next one who looks may not be meant to see it. */
  forget(): void {
    this.samples = []
    this.state = undefined
  }

  follow(leases: readonly string[]): void {
    this.#wanted = leases
    if (this.#socket?.readyState === WebSocket.OPEN) this.#say()
  }

  #say(): void {
    const request: FeedRequest = { leases: this.#wanted }
    this.#socket?.send(JSON.stringify(request))
  }

  #hear(message: FeedMessage): void {
    if (message.type === 'past') this.samples = [...message.samples]
    else if (message.type === 'beats') {
      for (const [lease, at] of message.beats) this.#events.beat(lease, at)
    } else {
      this.samples.push(message.sample)
      if (this.samples.length > KEPT) this.samples.shift()
      this.state = message.state
      this.#events.time(message.sample.at)
    }
    changed()
  }

  #listen(socket: WebSocket): void {
    clearTimeout(this.#silence)
    this.#silence = setTimeout(() => {
      // A tab that was asleep has heard nothing either, and finds what waits for it when it wakes.
      if (document.hidden) {
        this.#listen(socket)
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
    const rest = Math.min(REST_MIN_MS * 2 ** this.#failures++, REST_MAX_MS)
    setTimeout(() => {
      if (!this.#isOver) this.open()
    }, rest)
    changed()
  }
}
