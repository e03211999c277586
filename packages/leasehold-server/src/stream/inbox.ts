import type { StreamLimits } from 'leasehold/remote'
import { parseFrame } from './messages.ts'

type Message = readonly unknown[]

/** The unprocessed input of one client: frames, and the messages of the open frame. */
export class Inbox {
  readonly #frames: Buffer[] = []
  #messages: readonly Message[] = []
  #next = 0

  get isEmpty(): boolean {
    return this.#frames.length === 0 && this.isRead
  }

  /** Whether all messages of the open frame were processed. */
  get isRead(): boolean {
    return this.#next === this.#messages.length
  }

  /** The next message, if there is one. */
  get first(): Message | undefined {
    return this.#messages[this.#next]
  }

  add(frame: Buffer): void {
    this.#frames.push(frame)
  }

  /** Parses the next frame and returns its size in bytes. Throws if it is malformed. */
  open(limits: StreamLimits): number {
    const frame = this.#frames.shift()!
    this.#messages = parseFrame(frame, limits)
    this.#next = 0
    return frame.length
  }

  take(): Message | undefined {
    const message = this.#messages[this.#next]
    if (message === undefined) return undefined
    if (++this.#next === this.#messages.length) this.#forgetMessages()
    return message
  }

  /** Makes an unfinished message the next one again. */
  putBack(message: Message): void {
    this.#messages = [message, ...this.#messages.slice(this.#next)]
    this.#next = 0
  }

  clear(): void {
    this.#frames.length = 0
    this.#forgetMessages()
  }

  #forgetMessages(): void {
    this.#messages = []
    this.#next = 0
  }
}
