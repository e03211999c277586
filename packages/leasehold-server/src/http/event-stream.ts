import type { ServerResponse } from 'node:http'
import type { Clock, Timer } from 'leasehold/port'
import type { EventSink } from './route.ts'

export interface EventStreamOptions {
  readonly clock: Clock
  readonly heartbeat: number
  /** Whoever lets so many bytes wait is cut off. */
  readonly buffered: number
  /** Called when that happens. */
  dropped(): void
}

/**
 * One reader's stream of events. It is written as fast as things happen, so a reader that does not
 * keep up is cut off when too much waits for it: it then resumes after the last that it has read.
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
    this.#write(`${name}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
  }

  end(): void {
    this.#response.end()
  }

  #write(text: string): void {
    const response = this.#response
    if (response.writableEnded || response.destroyed) return
    response.write(text)
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
