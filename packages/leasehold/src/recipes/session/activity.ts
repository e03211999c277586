import type { LeaseId, Time } from '../../port/index.ts'

/** A session that is used is renewed at most once in this part of its ttl. */
export const RENEWAL_PART = 1 / 10

/** What one process knows of when a session was last renewed, by itself or by any other. */
export interface SessionActivity {
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

export function newActivity(lease: LeaseId, renewedAfter: number): SessionActivity {
  return { lease, until: undefined, seenAt: -Infinity, renewedAfter, pending: undefined }
}

/**
 * Notes that a reading sent at `sentAt` found the session to live until `until`.
 *
 * The store's clock is not ours, so its times are never compared with our own; but when `until` has
 * moved between two of our readings, somebody renewed the session after the first of them was sent.
 * That is how processes that all serve a session share its renewals without a word between them.
 */
export function noteReading(activity: SessionActivity, until: Time, sentAt: number): void {
  if (activity.until === undefined) activity.until = until
  // Answers may overtake each other, and no renewal shortens a life: an old answer says nothing.
  if (until < activity.until) return
  if (until > activity.until) {
    activity.until = until
    activity.renewedAfter = Math.max(activity.renewedAfter, activity.seenAt)
    activity.seenAt = sentAt
  } else activity.seenAt = Math.max(activity.seenAt, sentAt)
}

/** Whether activity must be told to the store: not where it surely was within the last part. */
export function isRenewalDue(activity: SessionActivity, ttl: number, now: number): boolean {
  return now - activity.renewedAfter >= ttl * RENEWAL_PART
}

/** With so many sessions, the one that was not looked at for the longest is forgotten. */
const ACTIVITIES_MAX = 10_000

/** The sessions that this process has seen. One that is forgotten costs one renewal, no more. */
export class ActivityCache {
  readonly #activities = new Map<string, SessionActivity>()

  get(ref: string, lease: LeaseId): SessionActivity | undefined {
    const activity = this.#activities.get(ref)
    return activity?.lease === lease ? activity : undefined
  }

  /** Of the lease that it had when last seen. */
  last(ref: string): SessionActivity | undefined {
    return this.#activities.get(ref)
  }

  set(ref: string, activity: SessionActivity): SessionActivity {
    this.#activities.delete(ref)
    this.#activities.set(ref, activity)
    if (this.#activities.size > ACTIVITIES_MAX) {
      const [oldest] = this.#activities.keys()
      this.#activities.delete(oldest!)
    }
    return activity
  }

  delete(ref: string): void {
    this.#activities.delete(ref)
  }
}
