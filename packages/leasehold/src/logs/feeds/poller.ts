import type { Position } from '../../log/index.ts'
import type { Clock, Timer } from '../../port/index.ts'
import { inTime } from '../engine-log.ts'
import type { Feed } from './feed.ts'

export interface PollerOptions {
  readonly clock: Clock
  /** How often to read without being woken, in milliseconds. */
  readonly poll: number
  /** No read may take longer. */
  readonly timeout: number
}

/** Reads for a feed when it is woken, and at least every `poll`; one read at a time. */
export class Poller {
  readonly #feed: Feed
  readonly #options: PollerOptions
  readonly #read: () => Promise<boolean>
  #isReading = false
  /** Read if the follower does not have this position; `Infinity`: read in any case. */
  #wanted: Position = 0
  #timer: Timer | undefined

  /** `read` delivers new entries or ends the feed. It returns whether there may be more. */
  constructor(feed: Feed, options: PollerOptions, read: () => Promise<boolean>) {
    this.#feed = feed
    this.#options = options
    this.#read = read
    feed.onClose(() => this.#timer?.cancel())
  }

  /** Reads now, or again after the current read, unless the follower then has `position`. */
  wake(position: Position = Infinity): void {
    this.#wanted = Math.max(this.#wanted, position)
    if (this.#isReading || !this.#isWanted) return
    this.#isReading = true
    this.#timer?.cancel()
    this.#readAll()
      .catch((error: unknown) => this.#feed.interrupt(error))
      .finally(() => {
        this.#isReading = false
        if (this.#isWanted) this.wake(this.#wanted)
        else if (this.#feed.isOpen) this.#wakeLater()
      })
  }

  async #readAll(): Promise<void> {
    const { clock, timeout } = this.#options
    const late = `the engine did not answer within ${timeout} ms: follow again`
    while (this.#isWanted) {
      this.#wanted = 0
      if (await inTime(this.#read(), clock, timeout, late)) this.#wanted = Infinity
    }
  }

  get #isWanted(): boolean {
    return this.#feed.isOpen && this.#wanted > this.#feed.after
  }

  #wakeLater(): void {
    const { clock, poll } = this.#options
    this.#timer = clock.timer(clock.now() + poll, () => this.wake())
  }
}
