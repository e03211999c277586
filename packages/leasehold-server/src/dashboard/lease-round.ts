import type { Clock, LeaseId, LeaseStore, Time, Timer } from 'leasehold/port'
import { type LapsedLease, lapseOf } from './sample.ts'

const PAGE = 1000
/** Between two pages of a store in this process, and of one that has to be asked over a network. */
const REST_MS = 250
const REMOTE_REST_MS = 2000
const LAPSED_SHOWN = 100
/** Who holds leases that nobody asked for: the server, to see how late they expire. */
const PROBE = 'leasehold'

/**
 * Goes through all leases again and again while somebody looks, a page at a time with rests between,
 * to see which have lapsed: nothing announces that. A small store is looked through several times a
 * second; of a large one a lease that lapses and recovers within a round may not be seen.
 */
export class LeaseRound {
  readonly #store: LeaseStore
  readonly #clock: Clock
  readonly #rest: number
  #timer: Timer | undefined
  #round = 0
  #count = 0
  #after: LeaseId | undefined
  #found: LapsedLease[] = []
  #last: { readonly count: number; readonly at: Time } | undefined
  #lapsed: readonly LapsedLease[] = []

  constructor(store: LeaseStore, clock: Clock) {
    this.#store = store
    this.#clock = clock
    this.#rest = store.guarantees.inProcess ? REST_MS : REMOTE_REST_MS
  }

  start(): void {
    this.#round++
    this.#begin()
    void this.#look(this.#round)
  }

  stop(): void {
    this.#round++
    this.#timer?.cancel()
    this.#last = undefined
    this.#lapsed = []
  }

  get count(): { readonly count: number; readonly age: number } | undefined {
    if (this.#last === undefined) return undefined
    return { count: this.#last.count, age: this.#clock.now() - this.#last.at }
  }

  /** Those of this round, and those of the last that may be so still. */
  lapsed(): readonly LapsedLease[] {
    const now = this.#clock.now()
    const seen = new Set(this.#found.map(({ lease }) => lease))
    const before = this.#lapsed.filter(({ lease, until }) => !seen.has(lease) && until > now)
    return [...this.#found, ...before].slice(0, LAPSED_SHOWN)
  }

  #begin(): void {
    this.#count = 0
    this.#after = undefined
    this.#found = []
  }

  async #look(round: number): Promise<void> {
    try {
      const page = await this.#store.read({ leases: true, after: this.#after, limit: PAGE })
      if (round !== this.#round) return
      const now = this.#clock.now()
      for (const lease of page.leases) {
        const { id, holder, until, claims } = lease
        // One that was made to be timed.
        if (holder === PROBE && claims === 0) continue
        this.#count++
        const since = lapseOf(lease)
        if (now > since && this.#found.length < LAPSED_SHOWN) {
          this.#found.push({ lease: id, holder, since, until })
        }
      }
      this.#after = page.leases.at(-1)?.id
      if (!page.more) {
        this.#last = { count: this.#count, at: now }
        this.#lapsed = this.#found
        this.#begin()
      }
    } catch {
      // The store is away: the round goes on when it answers again.
    }
    if (round !== this.#round) return
    this.#timer = this.#clock.timer(this.#clock.now() + this.#rest, () => void this.#look(round))
  }
}
