import type { Clock, Random, Timer } from '../../port/index.ts'
import type { Database } from './database.ts'
import { TAKE_OVER_MS } from './guarantees.ts'

/** How many leases one statement checks, which is how long others may have to wait for it. */
const SWEEP = 200
/** The minimum between two sweeps, and the pause if the database does not answer. */
const REST_MS = 5
const TROUBLE_MS = 250

/**
 * Handles the deadlines. Of all processes on a schema one does so at a time, by a name in the
 * database: it sleeps until the next deadline and expires what is due. The others sleep a little
 * longer, and take over if they then find it undone.
 */
export class Sweeper {
  readonly name: string
  readonly #database: Database
  readonly #clock: Clock
  readonly #lockTimeout: number
  readonly #jitter: number
  #timer: Timer | undefined
  #at = Infinity
  #isMine = false
  #sweeping: Promise<void> | undefined
  #closed = false

  constructor(database: Database, clock: Clock, random: Random, lockTimeout: number) {
    this.#database = database
    this.#clock = clock
    this.#lockTimeout = lockTimeout
    this.#jitter = random.next() * TAKE_OVER_MS
    this.name = random.id()
  }

  /**
   * An answer reported how long it is until the next deadline, and perhaps which process handles it:
   * null for none, and then the first one that comes.
   */
  receive(remaining: number, sweeper?: string | null): void {
    if (sweeper !== undefined) this.#isMine = sweeper === this.name
    const later = sweeper === null ? this.#jitter / 10 : TAKE_OVER_MS + this.#jitter
    this.#arm(this.#clock.now() + Math.max(remaining, 0) + (this.#isMine ? 1 : later))
  }

  /** Checks at once. */
  async sweep(): Promise<void> {
    if (this.#closed) return
    this.#sweeping ??= this.#sweep().finally(() => {
      this.#sweeping = undefined
    })
    await this.#sweeping
  }

  /** Lets another process do it, even if it has only just become ours. */
  async close(): Promise<void> {
    this.#closed = true
    this.#disarm()
    await this.#sweeping
    if (!this.#isMine) return
    await this.#database.ask('resign($1)', [this.name]).catch(() => {})
  }

  async #sweep(): Promise<void> {
    this.#disarm()
    let rest = REST_MS
    try {
      const [remaining, sweeper, more] = await this.#database.ask<
        [number | string, string | null, boolean]
      >('sweep($1::text::integer, $2, $3::text::integer, $4::text::float8)', [
        this.#lockTimeout,
        this.name,
        SWEEP,
        TAKE_OVER_MS,
      ])
      this.receive(more ? 0 : Number(remaining), sweeper)
    } catch {
      rest = TROUBLE_MS
      this.#arm(this.#clock.now() + rest)
    }
    if (this.#at < this.#clock.now() + rest) this.#arm(this.#clock.now() + rest, true)
  }

  /** A timer that is too early only checks; one that is too late would be late. */
  #arm(at: number, isLater = false): void {
    if (this.#closed || (at >= this.#at && !isLater)) return
    this.#disarm()
    if (at === Infinity) return
    this.#at = at
    this.#timer = this.#clock.timer(at, () => void this.sweep())
  }

  #disarm(): void {
    this.#timer?.cancel()
    this.#at = Infinity
  }
}
