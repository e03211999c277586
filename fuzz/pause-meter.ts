import { readFileSync } from 'node:fs'

const TICK_MS = 10

/**
 * The longest time for which this process kept its event loop busy.
 *
 * On a machine that others load, a process waits for a core. That is not a pause of ours: so what
 * counts is the processor time that the main thread used in one turn, and not the time of the clock.
 */
export class PauseMeter {
  #longest = 0
  #clock = performance.now()
  #used = processorTime()
  readonly #timer: NodeJS.Timeout

  constructor() {
    this.#timer = setInterval(() => this.#tick(), TICK_MS)
    this.#timer.unref()
  }

  /** Milliseconds, since the last call. */
  take(): number {
    this.#tick()
    const longest = this.#longest
    this.#longest = 0
    return longest
  }

  /** What was done since the last turn is not counted: it was not what is measured. */
  skip(): void {
    this.#clock = performance.now()
    this.#used = processorTime()
  }

  #tick(): void {
    const clock = performance.now()
    const used = processorTime()
    this.#longest = Math.max(this.#longest, Math.min(clock - this.#clock, used - this.#used))
    this.#clock = clock
    this.#used = used
  }
}

/** Of the main thread, in milliseconds; of the whole process where the system does not tell. */
function processorTime(): number {
  try {
    return Number(readFileSync('/proc/self/schedstat', 'utf8').split(' ', 1)[0]) / 1e6
  } catch {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1000
  }
}
