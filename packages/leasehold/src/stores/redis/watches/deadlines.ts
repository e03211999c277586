import type { Clock, Random, Timer } from '../../../port/index.ts'

/**
 * The longest random delay after a deadline before asking Redis to check. All stores with watches
 * know the next deadline; the first one that asks settles it, and the others are notified.
 */
const SPREAD_MS = 15
/** A message may be lost: everything is read again this often, while there are watches. */
export const SAFETY_MS = 5000
/** After a failure. */
const REST_MS = 250

/**
 * Decides when to ask Redis to expire what is due. Redis does nothing by itself, so every store with
 * watches has a timer for the next deadline of all leases.
 */
export class Deadlines {
  readonly #clock: Clock
  readonly #random: Random
  readonly #look: (all: boolean) => Promise<void>
  #timer: Timer | undefined
  #time = Infinity
  #lookedAt = 0
  #active = false

  /** `look` asks Redis; with `all` also for everything that a message might have reported. */
  constructor(clock: Clock, random: Random, look: (all: boolean) => Promise<void>) {
    this.#clock = clock
    this.#random = random
    this.#look = look
  }

  start(): void {
    if (this.#active) return
    this.#active = true
    this.#lookedAt = this.#clock.now()
    this.#arm()
  }

  stop(): void {
    this.#active = false
    this.#timer?.cancel()
  }

  /** An answer reported the next deadline. It may be older than that of a message. */
  answered(remaining: number): void {
    const time = this.#clock.now() + remaining
    if (time < this.#time) this.reported(remaining)
  }

  /** A message reported the next deadline. Messages arrive in order. */
  reported(remaining: number): void {
    this.#time = this.#clock.now() + remaining
    if (this.#active) this.#arm()
  }

  #arm(): void {
    this.#timer?.cancel()
    const due = this.#time + this.#random.next() * SPREAD_MS
    this.#set(Math.min(due, this.#lookedAt + SAFETY_MS))
  }

  #set(time: number): void {
    this.#timer = this.#clock.timer(time, () => void this.#ask())
  }

  async #ask(): Promise<void> {
    const now = this.#clock.now()
    const all = now >= this.#lookedAt + SAFETY_MS
    if (all) this.#lookedAt = now
    this.#time = Infinity
    try {
      await this.#look(all)
      if (this.#active) this.#arm()
    } catch {
      this.#timer?.cancel()
      if (this.#active) this.#set(this.#clock.now() + REST_MS)
    }
  }
}
