import type { Lease, LeaseId, Time } from 'leasehold/port'

/** How a server did in one second, as its dashboard plots it. Rates are per second. */
export interface Sample {
  /** On the server's clock. */
  readonly at: Time
  readonly grants: number
  readonly renewals: number
  readonly claims: number
  readonly releases: number
  readonly expiries: number
  /** Claims that were ended by force. */
  readonly revokes: number
  readonly failures: number
  /** From asking for a change to its durable answer, in milliseconds; nothing where nobody asked. */
  readonly commit: Spread | undefined
  /** How late the last lease expired that was made to be timed, in milliseconds. */
  readonly expiryLag: number | undefined
  /** How late the process gets to its work, in milliseconds: the worst of this second. */
  readonly loopDelay: number
  readonly memory: number
  readonly streams: number
}

export interface Spread {
  readonly median: number
  readonly high: number
}

/** A lease that was not renewed in time and is kept by its grace. */
export interface LapsedLease {
  readonly lease: LeaseId
  readonly holder: string
  readonly since: Time
  readonly until: Time
}

/**
 * When a lease lapses that is not renewed. One that was broken ends before its time, but it has not
 * lapsed while its heartbeats come.
 */
export function lapseOf({ until, grace, renewedAt, ttl }: Lease): Time {
  return Math.max(until - grace, renewedAt + ttl)
}

/** How things stand now, beside what is plotted. */
export interface State {
  /** How many leases there are, as counted in the last whole round; how long ago, in ms. */
  readonly leases: { readonly count: number; readonly age: number } | undefined
  readonly lapsed: readonly LapsedLease[]
  /** Why nothing can be written, where that is so. */
  readonly trouble: string | undefined
  readonly demonstration: DemonstrationState
}

export type DemonstrationState = 'off' | 'running' | 'ending'

/** What the server tells on the feed of the dashboard. */
export type FeedMessage =
  /** First: what was sampled before. */
  | { readonly type: 'past'; readonly samples: readonly Sample[] }
  | { readonly type: 'sample'; readonly sample: Sample; readonly state: State }
  /** Leases that are looked at, and when they were renewed, on the server's clock. */
  | { readonly type: 'beats'; readonly beats: readonly (readonly [LeaseId, Time])[] }

/** What the page tells: of which leases it wants to know the heartbeats, instead of all before. */
export interface FeedRequest {
  readonly leases: readonly LeaseId[]
}

/** Of so many leases at most. */
export const FOLLOWED_MAX = 500
/** So many samples are kept: ten minutes. */
export const SAMPLES_MAX = 600
