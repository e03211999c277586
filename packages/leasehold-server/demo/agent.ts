import { Leasehold } from 'leasehold'
import type { Clock, LeaseStore, Random } from 'leasehold/port'
import type { Logger } from 'pino'
import type { OpenCodingAgent } from './coding-agents.ts'
import { type KillableStore, killableStore } from './killable-store.ts'

export interface DemoOptions {
  readonly store: LeaseStore
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly openCodingAgent: OpenCodingAgent
}

/** The pause after a failure. */
const RETRY_MS = 1000

/** One agent of the demo: it runs in this process, but with its own client. */
export class Agent {
  readonly leasehold: Leasehold
  readonly store: LeaseStore
  readonly signal: AbortSignal
  readonly #options: DemoOptions
  readonly #end = new AbortController()
  readonly #killStore: () => void
  readonly #loops: Promise<void>[] = []

  private constructor(options: DemoOptions, leasehold: Leasehold, { store, kill }: KillableStore) {
    this.#options = options
    this.leasehold = leasehold
    this.store = store
    this.signal = this.#end.signal
    this.#killStore = kill
  }

  static async begin(options: DemoOptions, holder: string): Promise<Agent> {
    const { clock, random } = options
    const killable = killableStore(options.store)
    const leasehold = await Leasehold.open(killable.store, { holder, clock, random })
    return new Agent(options, leasehold, killable)
  }

  /** Repeats this work until the agent ends. */
  work(once: () => Promise<void>): void {
    const loop = async () => {
      while (!this.signal.aborted) {
        try {
          await once()
        } catch (error) {
          if (this.signal.aborted) return
          this.#options.log.debug({ err: error }, 'a demo agent failed')
          await this.pause(RETRY_MS)
        }
      }
    }
    this.#loops.push(loop())
  }

  /** Resolves after this time, or when the agent ends. */
  pause(ms: number): Promise<void> {
    const { clock } = this.#options
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

  /** A random number in this range. */
  between(from: number, to: number): number {
    return from + (to - from) * this.#options.random.next()
  }

  one<Thing>(things: readonly Thing[]): Thing {
    return things[Math.floor(this.#options.random.next() * things.length)]!
  }

  /** Ends like a killed process: releases nothing, so its leases expire. */
  kill(): void {
    this.#killStore()
    void this.end()
  }

  /** Releases everything and ends. */
  async end(): Promise<void> {
    this.#end.abort()
    await this.leasehold.close().catch(() => {})
    await Promise.allSettled(this.#loops)
  }
}
