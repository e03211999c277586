import type { ServerResponse } from 'node:http'
import type { Clock, Timer } from 'leasehold/port'
import type { EventSink } from '../route.ts'
import { withWholeTimes } from './whole-times.ts'

export interface EventStreamOptions {
  readonly clock: Clock
  readonly heartbeat: number
  /** A reader with this many unread bytes is disconnected. */
  readonly buffered: number
  /** Called when a reader is disconnected. */
  dropped(): void
}

/**
 * One reader's stream of events. A reader that is too slow is disconnected when too much is unread; it
 * can resume after the last event that it has read.
 */
export class EventStream implements EventSink {
  closed: () => void = () => {}
  readonly #response: ServerResponse
  readonly #options: EventStreamOptions
  #timer: Timer

  constructor(response: ServerResponse, options: EventStreamOptions) {
    this.#response = response
    this.#options = options
    response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
      'x-content-type-options': 'nosniff',
    })
    response.flushHeaders()
    response.once('close', () => {
      this.#timer.cancel()
      this.closed()
    })
    this.#timer = this.#beat()
  }

  send(event: string, data: unknown, id?: number): void {
    const name = id === undefined ? '' : `id: ${id}\n`
    this.#write(`${name}event: ${event}\ndata: ${JSON.stringify(withWholeTimes(data))}\n\n`)
  }

  end(): void {
    this.#response.end()
  }

  #write(chunk: string): void {
    const response = this.#response
    if (response.writableEnded || response.destroyed) return
    response.write(chunk)
    if (response.writableLength <= this.#options.buffered) return
    this.#options.dropped()
    response.destroy()
  }

  #beat(): Timer {
    const { clock, heartbeat } = this.#options
    return clock.timer(clock.now() + heartbeat, () => {
      this.#write(': still here\n\n')
      this.#timer = this.#beat()
    })
  }
}
