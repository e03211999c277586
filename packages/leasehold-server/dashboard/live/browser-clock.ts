import type { Clock, Timer } from 'leasehold/port'

/** The clock of a browser, in the place of the machine's. */
export const systemClock: Clock = {
  now: () => performance.timeOrigin + performance.now(),
  // A browser does not tell. Nothing is held here that could be outlived.
  asleep: () => 0,
  timer: (time, run) => new BrowserTimer(time, run),
  defer: (run) => void setTimeout(run),
}

/** The longest delay that setTimeout can count. */
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
