import type { StreamLimits } from 'leasehold/remote'
import { parseFrame } from './messages.ts'

type Message = readonly unknown[]

/** What has come from one client and is yet to be dealt with: frames, and the messages of one. */
export class Inbox {
  readonly #frames: Buffer[] = []
  #messages: readonly Message[] = []
  #next = 0

  get isEmpty(): boolean {
    return this.#frames.length === 0 && this.isRead
  }

  /** Every message that was taken out of a frame has been dealt with. */
  get isRead(): boolean {
    return this.#next === this.#messages.length
  }

  /** The message that is next, where there is one. */
  get first(): Message | undefined {
    return this.#messages[this.#next]
  }

  add(frame: Buffer): void {
    this.#frames.push(frame)
  }

  /** Takes the messages out of the next frame, and answers with its bytes. Parsing may fail. */
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

  /** A message that is not done with yet is the next one again. */
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
