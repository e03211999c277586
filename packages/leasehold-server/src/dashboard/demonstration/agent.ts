import { Leasehold } from 'leasehold'
import type { Clock, LeaseStore, Random } from 'leasehold/port'
import type { Logger } from 'pino'
import { mortal } from './mortal-store.ts'

export interface World {
  readonly store: LeaseStore
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

/** After a failure an agent rests for so long before it goes on with its work. */
const REST_MS = 1000

/** One agent of the demonstration, in this process but with a client of its own. */
export class Agent {
  readonly leasehold: Leasehold
  readonly signal: AbortSignal
  readonly #world: World
  readonly #ending: AbortController
  readonly #die: () => void
  readonly #works: Promise<void>[] = []

  private constructor(world: World, leasehold: Leasehold, die: () => void) {
    this.#world = world
    this.leasehold = leasehold
    this.#ending = new AbortController()
    this.signal = this.#ending.signal
    this.#die = die
  }

  static async begin(world: World, holder: string): Promise<Agent> {
    const { clock, random } = world
    const { store, die } = mortal(world.store)
    const leasehold = await Leasehold.open(store, { holder, clock, random })
    return new Agent(world, leasehold, die)
  }

  /** Does this again and again until its end. */
  work(once: () => Promise<void>): void {
    const again = async () => {
      while (!this.signal.aborted) {
        try {
          await once()
        } catch (error) {
          if (this.signal.aborted) return
          this.#world.log.debug({ err: error }, 'an agent of the demonstration failed')
          await this.pause(REST_MS)
        }
      }
    }
    this.#works.push(again())
  }

  /** Fulfilled after so long, or at its end. */
  pause(ms: number): Promise<void> {
    const { clock } = this.#world
    if (this.signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = clock.timer(clock.now() + ms, done)
      const { signal } = this
      function done() {
        timer.cancel()
        signal.removeEventListener('abort', done)
        resolve()
      }
      signal.addEventListener('abort', done)
    })
  }

  /** A time between these two. */
  between(from: number, to: number): number {
    return from + (to - from) * this.#world.random.next()
  }

  one<Thing>(things: readonly Thing[]): Thing {
    return things[Math.floor(this.#world.random.next() * things.length)]!
  }

  /** Is gone without a word, as a process is that was killed: its leases run out. */
  kill(): void {
    this.#die()
    void this.end()
  }

  /** Gives back all it has, and is gone. */
  async end(): Promise<void> {
    this.#ending.abort()
    await this.leasehold.close().catch(() => {})
    await Promise.allSettled(this.#works)
  }
}
