import type { Lease, LeaseId, Time } from 'leasehold/port'
import type { DemoState } from '#demo'

/** The metrics of one second, as the dashboard plots them. Rates are per second. */
export interface Sample {
  /** On the server's clock. */
  readonly at: Time
  readonly grants: number
  readonly renewals: number
  readonly claims: number
  readonly releases: number
  readonly expiries: number
  /** Revoked and broken claims. */
  readonly revokes: number
  readonly failures: number
  /** Time from a change request to its durable answer, in milliseconds, if there was one. */
  readonly commit: Quantiles | undefined
  /** How late the last probe lease expired, in milliseconds. */
  readonly expiryLag: number | undefined
  /** The longest event loop delay of this second, in milliseconds. */
  readonly loopDelay: number
  readonly memory: number
  readonly streams: number
  /** What the store held when it was last counted. */
  readonly levels: Levels | undefined
}

export interface Levels {
  readonly leases: number
  readonly keys: number
  readonly holders: number
  readonly waiting: number
}

export interface Quantiles {
  readonly median: number
  readonly high: number
}

/** A lease that was not renewed in time and is in its grace period. */
export interface LapsedLease {
  readonly lease: LeaseId
  readonly holder: string
  readonly since: Time
  readonly until: Time
}

/**
 * When a lease lapses if it is not renewed. A broken lease ends earlier, but it has not lapsed while
 * it is renewed.
 */
export function lapseOf({ until, grace, renewedAt, ttl }: Lease): Time {
  return Math.max(until - grace, renewedAt + ttl)
}

/** The current state of the server, beside the plots. */
export interface ServerState {
  /** The number of leases in the last complete scan, and its age in milliseconds. */
  readonly leases: { readonly count: number; readonly age: number } | undefined
  readonly lapsed: readonly LapsedLease[]
  /** Why the store cannot be written, if so. */
  readonly storageError: string | undefined
  readonly demo: DemoState
}

/** A message from the server on the dashboard's feed. */
export type FeedMessage =
  /** The first message: the samples so far. */
  | { readonly type: 'history'; readonly samples: readonly Sample[] }
  | { readonly type: 'sample'; readonly sample: Sample; readonly state: ServerState }
  /** Followed leases and when they were renewed, on the server's clock. */
  | { readonly type: 'heartbeats'; readonly heartbeats: readonly (readonly [LeaseId, Time])[] }

/** A message from the page: the leases to follow from now on. */
export interface FeedRequest {
  readonly leases: readonly LeaseId[]
}

/** The most leases that one page can follow. */
export const FOLLOWED_MAX = 500
/** Ten minutes of samples. */
export const SAMPLES_MAX = 600
