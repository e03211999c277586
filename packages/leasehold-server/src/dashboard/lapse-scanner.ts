import type { Clock, LeaseId, LeaseStore, Time, Timer } from 'leasehold/port'
import { isProbe } from '../operations/index.ts'
import { type LapsedLease, lapseOf } from './feed-messages.ts'

const PAGE = 1000
/** The pause between two pages, for a store in this process and for one over a network. */
const PAUSE_MS = 250
const REMOTE_PAUSE_MS = 2000
const LAPSED_SHOWN = 100

/**
 * Finds lapsed leases. No event reports a lapse, so this reads all leases in rounds, page by page
 * with pauses, while somebody watches the dashboard. In a large store it may miss a lease that lapses
 * and recovers within one round.
 */
export class LapseScanner {
  readonly #store: LeaseStore
  readonly #clock: Clock
  readonly #pause: number
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
    this.#pause = store.guarantees.inProcess ? PAUSE_MS : REMOTE_PAUSE_MS
  }

  start(): void {
    this.#round++
    this.#begin()
    void this.#scanPage(this.#round)
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

  /** The lapsed leases of this round, and those of the last round that have not ended. */
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

  async #scanPage(round: number): Promise<void> {
    try {
      const page = await this.#store.read({ leases: true, after: this.#after, limit: PAGE })
      if (round !== this.#round) return
      const now = this.#clock.now()
      for (const lease of page.leases) {
        if (isProbe(lease)) continue
        const { id, holder, until } = lease
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
      // The store is unavailable; the round continues when it answers again.
    }
    if (round !== this.#round) return
    const next = this.#clock.now() + this.#pause
    this.#timer = this.#clock.timer(next, () => void this.#scanPage(round))
  }
}
