import type { Hold } from 'leasehold'
import type { Event, LeaseId, RevokeRequest } from 'leasehold/port'

/**
 * What clients received, and when in true time: all that the checkers know. Each list is in the order
 * in which clients received its entries.
 */

/** A client holds one key, or several at once, or did. */
export interface Holding {
  readonly client: string
  readonly keys: readonly string[]
  readonly shared: boolean
  readonly token: number
  readonly lease: LeaseId
  readonly hold: Hold
  readonly ttl: number
  readonly grace: number
  /** How many may hold at once at the most, this one included; 0 if there is no limit. */
  readonly limit: number
  /** When the client asked for it, and when it received it. */
  readonly invoked: number
  readonly notified: number
  /** Whether the process that holds it can look at it now: it runs, and is not paused. */
  readonly awake: () => boolean
  /** When its client gave it back, or gave it up; `Infinity` while it has not. */
  ended: number
}

/** A write to the protected resource, with the token of the moment in which it was sent. */
export interface Write {
  readonly key: string
  readonly token: number
  readonly sent: number
  readonly arrived: number
  readonly accepted: boolean
}

/** A lease as its client knows it. */
export interface LeaseRecord {
  readonly lease: LeaseId
  readonly holder: string
  readonly ttl: number
  readonly grace: number
  readonly maxLife: number
  readonly parent: LeaseId | undefined
  /** When the grant was first sent, and when it was answered. */
  readonly grantedFrom: number
  readonly grantedBy: number
  /** When the grant or renewal was sent that was last known to be carried out. */
  renewedFrom: number
  /** When the client last received a renewal, and the `renewedFrom` that it knew before that. */
  toldAt: number
  knownBefore: number
  /** The remote store that it was granted through, if there was one. */
  readonly stream: string | undefined
  /** Whether it was ever used to claim anything. */
  claimed: boolean
  /** Whether its end was asked for by anyone. */
  ended: boolean
}

/** One call of the port, by a client that speaks it directly. */
export interface Call {
  readonly client: string
  readonly kind: 'grant' | 'claim' | 'release' | 'renew'
  readonly key: string
  readonly invoked: number
  /** `Infinity` if no answer came. */
  answered: number
  readonly lease: LeaseId
  readonly token: number
  readonly ttl: number
  readonly request: string | undefined
  answer: CallAnswer | undefined
}

export type CallAnswer =
  | {
      readonly type: 'done'
      readonly revision: number
      readonly token: number
      readonly lease: LeaseId
    }
  | { readonly type: 'busy'; readonly revision: number; readonly token: number }
  | { readonly type: 'refused'; readonly code: string }
  | { readonly type: 'lost' }

/** One watcher of a prefix from beginning to end, however often its connection breaks. */
export interface WatchRecord {
  readonly name: string
  /** Everything after this revision should be here. */
  readonly from: number
  readonly events: Event[]
  /** Whether it still watches, as far as it knows. */
  open: boolean
}

/** A lease and those under it, each with a claim. */
export interface Family {
  readonly root: LeaseId
  readonly members: ReadonlySet<LeaseId>
}

/** Somebody asked for the end of leases or claims. */
export interface ForcedEnd {
  readonly client: string
  readonly request: RevokeRequest
  readonly asked: number
  /** When it was known to be carried out; `Infinity` if it is not known. */
  answered: number
}

/** The events of one revision; after a full read, all claims at that revision. */
export interface Step {
  readonly revision: number
  readonly events: readonly Event[]
  readonly isFullRead: boolean
}
