import type { Clock, Timer } from 'leasehold/port'

/** The browser's clock; the build uses it instead of `port/system-clock.ts`. */
export const systemClock: Clock = {
  now: () => performance.timeOrigin + performance.now(),
  // A browser cannot tell. The page holds no lease, so it does not matter.
  asleep: () => 0,
  timer: (time, run) => new BrowserTimer(time, run),
  defer: (run) => void setTimeout(run),
}

/** The longest delay of setTimeout. */
const DELAY_MAX = 2 ** 31 - 1

class BrowserTimer implements Timer {
  readonly #time: number
  readonly #run: () => void
  #handle: number | undefined

  constructor(time: number, run: () => void) {
    this.#time = time
    this.#run = run
    if (time < Infinity) this.#arm()
  }

  cancel(): void {
    clearTimeout(this.#handle)
  }

  #arm(): void {
    const delay = Math.min(Math.ceil(this.#time - systemClock.now()), DELAY_MAX)
    this.#handle = setTimeout(() => this.#fire(), Math.max(delay, 0)) as unknown as number
  }

  #fire(): void {
    if (systemClock.now() < this.#time) this.#arm()
    else this.#run()
  }
}
