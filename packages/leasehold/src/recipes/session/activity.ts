import type { LeaseId, Time } from '../../port/index.ts'

/** A session in use is renewed at most once per this part of its ttl. */
export const RENEWAL_PART = 1 / 10

/** What one process knows about the last renewal of a session, by any process. */
export interface SessionActivity {
  readonly lease: LeaseId
  /** The end of the session at the last read, by the store's clock; `undefined` before. */
  until: Time | undefined
  /** When that read was sent. This and the following times are by the local clock. */
  seenAt: number
  /** The last renewal happened after this time. */
  renewedAfter: number
  /** A running renewal, shared by all callers of `touch`. */
  pending: Promise<void> | undefined
}

export function newActivity(lease: LeaseId, renewedAfter: number): SessionActivity {
  return { lease, until: undefined, seenAt: -Infinity, renewedAfter, pending: undefined }
}

/**
 * Records that a read sent at `sentAt` found the session valid until `until`.
 *
 * Times of the store's clock and the local clock are never compared. But if `until` moved between
 * two local reads, somebody renewed the session after the first of them was sent. So processes
 * share renewals without talking to each other.
 */
export function noteReading(activity: SessionActivity, until: Time, sentAt: number): void {
  if (activity.until === undefined) activity.until = until
  // Answers can arrive out of order, and no renewal shortens a session: ignore an older `until`.
  if (until < activity.until) return
  if (until > activity.until) {
    activity.until = until
    activity.renewedAfter = Math.max(activity.renewedAfter, activity.seenAt)
    activity.seenAt = sentAt
  } else activity.seenAt = Math.max(activity.seenAt, sentAt)
}

/** Whether a renewal is due: not if one surely happened within the last part of the ttl. */
export function isRenewalDue(activity: SessionActivity, ttl: number, now: number): boolean {
  return now - activity.renewedAfter >= ttl * RENEWAL_PART
}

/** Above this number, the session that was not used for the longest time is forgotten. */
const ACTIVITIES_MAX = 10_000

/** The sessions that this process has seen. Forgetting one costs one renewal. */
export class ActivityCache {
  readonly #activities = new Map<string, SessionActivity>()

  get(ref: string, lease: LeaseId): SessionActivity | undefined {
    const activity = this.#activities.get(ref)
    return activity?.lease === lease ? activity : undefined
  }

  /** Returns the activity for the last known lease. */
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
