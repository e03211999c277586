import type { Clock, Timer } from 'leasehold/port'
import type { Logger } from 'pino'

/** How long to wait before the next attempt. */
const RETRY_MS = 1000

/** Does the work of events that were missed, or whose work failed, again until it succeeds. */
export class Recovery {
  readonly #clock: Clock
  readonly #log: Logger
  readonly #recover: () => Promise<void>
  #timer: Timer | undefined
  #isNeeded = false
  #isRunning = false
  #isOpen = true

  constructor(clock: Clock, log: Logger, recover: () => Promise<void>) {
    this.#clock = clock
    this.#log = log
    this.#recover = recover
  }

  /** Events were missed. */
  start(): void {
    this.#isNeeded = true
    if (!this.#isRunning) void this.#run()
  }

  /** The work of an event failed. */
  startLater(error: unknown): void {
    if (!this.#isOpen) return
    this.#log.warn({ err: error }, 'the Consul API could not follow a change. It tries again')
    this.#timer ??= this.#clock.timer(this.#clock.now() + RETRY_MS, () => {
      this.#timer = undefined
      this.start()
    })
  }

  close(): void {
    this.#isOpen = false
    this.#timer?.cancel()
  }

  async #run(): Promise<void> {
    this.#isRunning = true
    try {
      while (this.#isNeeded && this.#isOpen) {
        this.#isNeeded = false
        await this.#recover()
      }
    } catch (error) {
      this.startLater(error)
    }
    this.#isRunning = false
  }
}
