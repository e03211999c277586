import { readFileSync } from 'node:fs'

const TICK_MS = 10

/**
 * The longest time for which this process kept its event loop busy.
 *
 * On a loaded machine a process waits for a core, which is not a pause of ours. So this counts the
 * processor time that the main thread used in one turn, not the time of the clock.
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

  /** The longest pause since the last call, in milliseconds. */
  take(): number {
    this.#tick()
    const longest = this.#longest
    this.#longest = 0
    return longest
  }

  /** Ignores the work since the last turn: it is not what is measured. */
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

/** Processor time in milliseconds: of the main thread, or else of the whole process. */
function processorTime(): number {
  try {
    return Number(readFileSync('/proc/self/schedstat', 'utf8').split(' ', 1)[0]) / 1e6
  } catch {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1000
  }
}
