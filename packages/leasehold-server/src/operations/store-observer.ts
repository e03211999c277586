import { type Clock, type End, isLeaseholdError, type LeaseStore, type Watch } from 'leasehold/port'
import type { Logger } from 'pino'
import { PROBE_LABELS, PROBE_TTL_MS } from './expiry-probe.ts'
import { Histogram } from './exposition.ts'

const RETRY_MS = 1000
/** Counting waiters reads at most this many pages of this many keys. */
const PAGES = 20
const PAGE = 1000

/**
 * Counts the events of a store by watching it, from `start` on.
 */
export class StoreObserver {
  claimed = 0
  updated = 0
  /** Ended claims by reason. */
  readonly removed: Record<string, number> = { released: 0, expired: 0, revoked: 0, broken: 0 }
  /** How late probe leases expired, in seconds. */
  readonly expiryLag = new Histogram()
  readonly #store: LeaseStore
  readonly #clock: Clock
  readonly #log: Logger
  #watch: Watch | undefined = undefined
  #started = false
  #closed = false
  #probing = false

  constructor(store: LeaseStore, clock: Clock, log: Logger) {
    this.#store = store
    this.#clock = clock
    this.#log = log
  }

  start(): void {
    if (this.#started || this.#closed) return
    this.#started = true
    this.#begin()
  }

  close(): void {
    this.#closed = true
    this.#watch?.close()
  }

  /**
   * Lets a probe lease expire and measures how late the watch reports it: the delay of a waiter
   * behind a dead holder, on any store. One probe runs at a time. Returns milliseconds.
   */
  async probeExpiry(): Promise<number | undefined> {
    if (this.#probing || this.#closed) return undefined
    this.#probing = true
    try {
      const ttl = Math.max(PROBE_TTL_MS, this.#store.guarantees.ttl.min)
      const granted = await this.#store.grant({ holder: 'leasehold', ttl, labels: PROBE_LABELS })
      const due = this.#clock.now() + ttl
      if (granted.outcome === 'granted') await this.#gone(granted.lease)
      if (this.#closed) return undefined
      const late = Math.max(0, this.#clock.now() - due)
      this.expiryLag.add(late / 1000)
      return late
    } catch (error) {
      if (!isLeaseholdError(error, 'closed')) this.#log.debug({ err: error }, 'expiry probe failed')
      return undefined
    } finally {
      this.#probing = false
    }
  }

  /** Counts the waiting claims on the first keys by name. */
  async countWaiters(): Promise<number> {
    let waiting = 0
    let after: string | undefined
    for (let page = 0; page < PAGES; page++) {
      const { keys, more } = await this.#store.read({ prefix: '', after, limit: PAGE })
      for (const { count, holders } of keys) waiting += count - holders
      after = keys.at(-1)?.key
      if (!more || after === undefined) break
    }
    return waiting
  }

  #gone(lease: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#store.watch({ lease }, (notice) => {
        if (notice.type === 'gone') resolve()
        if (notice.type === 'interrupted') reject(notice.error)
      })
    })
  }

  #begin(): void {
    if (this.#closed) return
    try {
      this.#watch = this.#store.watch({ prefix: '' }, (notice) => {
        if (notice.type === 'compacted' || notice.type === 'interrupted') this.#retryLater()
        if (notice.type !== 'events') return
        for (const { type, key, end, holder } of notice.events) {
          if (type === 'claimed') this.claimed++
          else if (type === 'updated') this.updated++
          else if (end !== undefined) {
            const reason = endOf(key, end, holder)
            this.removed[reason] = (this.removed[reason] ?? 0) + 1
          }
        }
      })
    } catch {
      this.#retryLater()
    }
  }

  #retryLater(): void {
    this.#clock.timer(this.#clock.now() + RETRY_MS, () => this.#begin())
  }
}

/** Clients revoke the usage records of a pool to merge them. */
const USAGE_RECORDS = /^pool\/[^/]+\/books$/

/**
 * A client that closes revokes its own leases, and pools merge their usage records: an alert on
 * revocations must count neither.
 */
function endOf(key: string, { reason, by, why }: End, holder: string): string {
  if (reason !== 'revoked') return reason
  return (by === holder && why === 'closed') || USAGE_RECORDS.test(key) ? 'closed' : reason
}
