import type { WebSocket } from 'ws'
import type { Surroundings } from './surroundings.ts'

/** Characters in one frame, if there are more to send. */
const FRAME_CHARACTERS = 512 * 1024

export interface OutgoingEvents {
  /** The client does not read, and more waits for it than may. */
  tooSlow(bytes: number): void
  /** Something has left: there may be room again. */
  left(): void
  /** Sending has failed. */
  failed(error: unknown): void
}

/** What is to be sent to one client: gathered for one turn of the event loop, and sent together. */
export class Outgoing {
  readonly #socket: WebSocket
  readonly #around: Surroundings
  readonly #events: OutgoingEvents
  #texts: string[] = []
  #size = 0
  #flushing = false
  #stopped = false

  constructor(socket: WebSocket, around: Surroundings, events: OutgoingEvents) {
    this.#socket = socket
    this.#around = around
    this.#events = events
  }

  /** So much waits to be read that no answer should be added to it. */
  get isFull(): boolean {
    return this.#size + this.#socket.bufferedAmount > this.#around.options.highWater
  }

  push(text: string): void {
    if (this.#stopped) return
    this.#texts.push(text)
    this.#size += text.length
    if (this.#size >= FRAME_CHARACTERS) this.#send()
    else if (!this.#flushing) {
      this.#flushing = true
      this.#around.clock.defer(() => {
        this.#flushing = false
        this.flush()
      })
    }
  }

  flush(): void {
    if (this.#texts.length > 0 && !this.#stopped) this.#send()
  }

  stop(): void {
    this.#stopped = true
    this.#texts = []
  }

  #send(): void {
    const frame = `[${this.#texts.join(',')}]`
    this.#texts = []
    this.#size = 0
    try {
      this.#socket.send(frame, this.#events.left)
    } catch (error) {
      this.#events.failed(error)
      return
    }
    const waiting = this.#socket.bufferedAmount
    if (waiting <= this.#around.options.buffered) return
    this.#around.stats.dropped++
    this.#events.tooSlow(waiting)
  }
}
