import type { Writable } from 'node:stream'
import type { WebSocket } from 'ws'
import type { StreamDependencies } from './stream-dependencies.ts'
import { textFrame } from './text-frame.ts'

/** The characters in one frame, if there is more to send. */
const FRAME_CHARACTERS = 512 * 1024

export interface OutboxEvents {
  /** The client reads too slowly, and too many bytes are buffered. */
  tooSlow(bytes: number): void
  /** A frame was sent: there may be room again. */
  sent(): void
  /** Sending has failed. */
  failed(error: unknown): void
}

/** Collects the messages to one client during one tick of the event loop, and sends them together. */
export class Outbox {
  readonly #socket: WebSocket
  readonly #transport: Writable | undefined
  readonly #dependencies: StreamDependencies
  readonly #events: OutboxEvents
  #messages: string[] = []
  #size = 0
  #flushing = false
  #stopped = false

  /** With its `transport`, a socket that is open gets whole frames, which take one write each. */
  constructor(
    socket: WebSocket,
    transport: Writable | undefined,
    dependencies: StreamDependencies,
    events: OutboxEvents,
  ) {
    this.#socket = socket
    this.#transport = transport
    this.#dependencies = dependencies
    this.#events = events
  }

  /** Whether so much is unread that no answers should be added. */
  get isFull(): boolean {
    return this.#size + this.#socket.bufferedAmount > this.#dependencies.options.highWater
  }

  push(message: string): void {
    if (this.#stopped) return
    this.#messages.push(message)
    this.#size += message.length
    if (this.#size >= FRAME_CHARACTERS) this.#send()
    else if (!this.#flushing) {
      this.#flushing = true
      this.#dependencies.clock.defer(() => {
        this.#flushing = false
        this.flush()
      })
    }
  }

  flush(): void {
    if (this.#messages.length > 0 && !this.#stopped) this.#send()
  }

  stop(): void {
    this.#stopped = true
    this.#messages = []
  }

  #send(): void {
    const frame = `[${this.#messages.join(',')}]`
    this.#messages = []
    this.#size = 0
    try {
      const { readyState, OPEN } = this.#socket
      if (this.#transport === undefined || readyState !== OPEN) {
        this.#socket.send(frame, this.#events.sent)
      } else this.#transport.write(textFrame(frame), this.#events.sent)
    } catch (error) {
      this.#events.failed(error)
      return
    }
    const waiting = this.#socket.bufferedAmount
    if (waiting <= this.#dependencies.options.buffered) return
    this.#dependencies.stats.dropped++
    this.#events.tooSlow(waiting)
  }
}
