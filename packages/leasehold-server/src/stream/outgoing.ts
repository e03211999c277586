import type { WebSocket } from 'ws'
import type { Surroundings } from './surroundings.ts'

/** Characters in one frame, if there are more to send. */
const FRAME_CHARACTERS = 512 * 1024

export interface OutgoingEvents {
  /** The client does not read, and more waits for it than may. */
  tooSlow(bytes: number): void
  roomChanged(): void
}

/** What is to be sent to one client: gathered for one turn of the event loop, and sent together. */
export class Outgoing {
  /** So much waits to be read that nothing should be added to it. */
  isFull = false
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
    const { highWater, buffered } = this.#around.options
    const frame = `[${this.#texts.join(',')}]`
    this.#texts = []
    this.#size = 0
    this.#socket.send(frame, this.#sent)
    const waiting = this.#socket.bufferedAmount
    if (waiting > buffered) {
      this.#around.stats.dropped++
      this.#events.tooSlow(waiting)
    } else if (waiting > highWater && !this.isFull) {
      this.isFull = true
      this.#events.roomChanged()
    }
  }

  readonly #sent = (): void => {
    if (!this.isFull || this.#socket.bufferedAmount > this.#around.options.highWater / 2) return
    this.isFull = false
    this.#events.roomChanged()
  }
}
