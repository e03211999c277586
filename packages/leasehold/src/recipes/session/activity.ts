import type { LeaseId, Time } from '../../port/index.ts'

/** A session that is used is renewed at most once in this part of its ttl. */
export const RENEWAL_PART = 1 / 10

/** What one process knows of when a session was last renewed, by itself or by any other. */
export interface Sight {
  readonly lease: LeaseId
  /** What the store said when it was last read; `undefined` before. On the store's clock. */
  until: Time | undefined
  /** When that reading was sent. On our clock, as all times below. */
  seenAt: number
  /** The last renewal was carried out after this. */
  renewedAfter: number
  /** A renewal that is on its way, for all who touch meanwhile. */
  pending: Promise<void> | undefined
}

export function newSight(lease: LeaseId, renewedAfter: number): Sight {
  return { lease, until: undefined, seenAt: -Infinity, renewedAfter, pending: undefined }
}

/**
 * Notes that a reading sent at `sentAt` found the session to live until `until`.
 *
 * The store's clock is not ours, so its times are never compared with our own; but when `until` has
 * moved between two of our readings, somebody renewed the session after the first of them was sent.
 * That is how processes that all serve a session share its renewals without a word between them.
 */
export function noteReading(sight: Sight, until: Time, sentAt: number): void {
  if (sight.until === undefined) sight.until = until
  // Answers may overtake each other, and no renewal shortens a life: an old answer says nothing.
  if (until < sight.until) return
  if (until > sight.until) {
    sight.until = until
    sight.renewedAfter = Math.max(sight.renewedAfter, sight.seenAt)
    sight.seenAt = sentAt
  } else sight.seenAt = Math.max(sight.seenAt, sentAt)
}

/** Whether activity must be told to the store: not where it surely was within the last part. */
export function isDue(sight: Sight, ttl: number, now: number): boolean {
  return now - sight.renewedAfter >= ttl * RENEWAL_PART
}

/** With so many sessions, the one that was not looked at for the longest is forgotten. */
const SIGHTS_MAX = 10_000

/** The sessions that this process has seen. One that is forgotten costs one renewal, no more. */
export class Sights {
  readonly #sights = new Map<string, Sight>()

  get(ref: string, lease: LeaseId): Sight | undefined {
    const sight = this.#sights.get(ref)
    return sight?.lease === lease ? sight : undefined
  }

  /** Of the lease that it had when last seen. */
  last(ref: string): Sight | undefined {
    return this.#sights.get(ref)
  }

  set(ref: string, sight: Sight): Sight {
    this.#sights.delete(ref)
    this.#sights.set(ref, sight)
    if (this.#sights.size > SIGHTS_MAX) {
      const [oldest] = this.#sights.keys()
      this.#sights.delete(oldest!)
    }
    return sight
  }

  delete(ref: string): void {
    this.#sights.delete(ref)
  }
}
