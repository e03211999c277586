// long because half of it is prose: each method's promises are next to its types.
import type { End, LeaseholdError } from './errors.ts'
import type { Mode } from './holds.ts'

/**
 * The port: what every lease store promises, and what it does not.
 *
 * **The model.** A *lease* is a grant of time to a *holder*. A *key* names anything that can be
 * held. A *claim* puts a lease in the queue of a key, with a *token* that only increases on that
 * key. A key is the list of its claims in token order. That list alone decides which claims hold
 * the key: see `holds.ts`. To wait is to be in the list.
 *
 * **Three outcomes.** A call is *done* (its promise is fulfilled), *refused* (rejected with a
 * `LeaseholdError` whose `outcome` is `refused`: nothing was changed), or *unknown* (rejected with
 * an error whose `outcome` is `unknown`: the store may have carried it out, or may still do so).
 * Never treat a call without an answer as refused.
 *
 * **Time.** Only the store decides when a lease expires, by its own monotonic clock, and never
 * before `ttl + grace` has passed since it carried out the grant or the last renewal. A lease
 * expires when the store carries out the expiry, not when the clock reaches the deadline: until
 * then a renewal still saves the lease. A claim on a key makes the store carry out at once an
 * overdue expiry of the first claim there. `guarantees` says how late an expiry can otherwise be.
 *
 * **Revisions.** Every call that changes something does so in one step with its own revision, and
 * revisions only increase. Renewals change no revision. When a lease ends, its claims and its child
 * leases with their claims end in the same revision.
 *
 * **Repetition.** A call may carry a request id. A second call with the same id changes nothing
 * and gets the answer of the first, even a refusal, as long as the store remembers it
 * (`guarantees.requestsRemembered`). Without an id, a call that is sent twice is two calls.
 *
 * **Not promised.** A paused holder, or a slow message, may act after the lease has ended: only the
 * protected resource can refuse it, by comparing tokens. Revoking is not as safe as expiry: it
 * takes effect at once, whatever the holder still believes.
 */
export interface LeaseStore {
  /** What this store promises. It does not change while the store is open. */
  readonly guarantees: Guarantees

  /**
   * Creates a lease. With `claims`, the first claims are made in the same step, so that one round
   * trip takes a lock. With `ifFree`, if not all claims would hold at once, nothing is created and
   * the answer is `busy`.
   *
   * Refused: `invalid-argument`, `limit-exceeded`, `lease-not-found` or `lease-ended` (the parent).
   */
  grant(request: GrantRequest): Promise<Granted | Busy>

  /**
   * Gives each lease its full ttl again, counted from when the store carries out the renewal, but
   * never past the end of its life (`maxLife`, or a break). Never shortens a lease and never
   * changes a token. The answer lists only the exceptions: a lease that is not in it was renewed
   * for its whole ttl. Repeating the call is harmless.
   *
   * A renewal need not be durable: a store that restarts gives every lease its full ttl.
   */
  renew(leases: readonly LeaseId[]): Promise<Renewed>

  /**
   * Ends leases by force, or removes claims: see `RevokeTarget`. With `after`, the leases get a
   * final deadline instead, which no renewal can extend (a break with a period).
   *
   * Revoking a lease that has already ended is refused with `lease-ended`. A parent may have many
   * leases and a prefix many claims: one call ends at most `limits.page` of them. `more` says that
   * some are left; call again.
   */
  revoke(request: RevokeRequest): Promise<Revoked>

  /**
   * Adds a claim on one key, or on several in one step. The claims of one step share one token and
   * are queued on all keys at once, which is why waiting for many keys cannot deadlock. The claim
   * either holds now (`holds`) or waits in the queue; `watch` on the lease reports when it holds.
   * With `ifFree`, if it would not hold every key at once, nothing is added and the answer is
   * `busy`.
   *
   * With `replaces`, the same step first releases the claims of this lease with that token on the
   * same keys. If one of them does not exist, the call is refused with `claim-not-found` and nothing
   * changes. This is a compare-and-set: the token of a claim is the version of its value, and of two
   * calls that replace the same token only one succeeds. Readers never see the key without a claim.
   *
   * A lease may claim one key more than once; each claim has its own token and queue position.
   *
   * Refused: `invalid-argument`, `limit-exceeded`, `lease-not-found`, `lease-ended`,
   * `claim-not-found`.
   */
  claim(request: ClaimRequest): Promise<Claimed | Busy>

  /**
   * Removes the claim of this lease with this token from the given keys, and notifies the leases
   * whose claims hold as a result. If any of the claims does not exist, the call is refused with
   * `claim-not-found` and nothing is removed: an old token can never free what a newer one holds.
   */
  release(request: ReleaseRequest): Promise<Changed>

  /** Replaces the value of a claim. Refused with `claim-not-found` if there is no such claim. */
  update(request: UpdateRequest): Promise<Changed>

  /**
   * Reads a key, the keys of a prefix, a lease, all leases, or the history of a key. Everything in
   * one answer was true together at the answer's revision. Long answers come in pages.
   */
  read<Q extends Query>(query: Q): Promise<Reading<Q>>

  /**
   * Watches the keys of a prefix, from now on or from a revision, or watches one lease.
   *
   * The events of a prefix arrive in revision order, each once, without gaps, and all events of one
   * revision in one call. If the store no longer keeps the wanted revision, the answer is
   * `compacted`: read again and watch from the revision of that read. A lease's watch first reports
   * the current claims, then only what concerns the lease: one of its claims holds, one was removed
   * by force, the lease ended. It never reports every change on a contended key.
   *
   * The observer is never called before `watch` has returned, nor after `close` was called. The
   * notices `compacted`, `gone` and `interrupted` are final: open a new watch. `watch` throws if an
   * argument is invalid or the store is closed. No notice is sent before the change is as durable
   * as this store makes changes.
   */
  watch(target: WatchTarget, observer: Observer): Watch

  /**
   * Stops the store: it refuses every later call with `closed` and ends the watches. Leases do not
   * end. Closing twice does nothing.
   */
  close(): Promise<void>
}

/** Identifies a lease. Never reused in its store, opaque, not a secret. */
export type LeaseId = string
/** Names anything that can be held, such as `gpu/0` or `services/embedder/i-42`. */
export type Key = string
/** The fencing token: a safe integer that only increases on its key. Compare it as a number. */
export type Token = number
/** Counts the changes of a store. A safe integer. */
export type Revision = number
/** Identifies one call, so that the store recognises a repetition. */
export type RequestId = string
/** A time on the store's own clock, in milliseconds near the Unix epoch: for display only. */
export type Time = number

export type Labels = Readonly<Record<string, string>>

/** Describes a lease. Times are in milliseconds and, except for `grace`, may be `Infinity`. */
export interface LeaseSpec {
  /** The holder's name, for people and for logs. */
  readonly holder: string
  /** How long the lease lives without a renewal. */
  readonly ttl: number
  /** How much longer the store keeps the lease before it removes the claims. Default: 0. */
  readonly grace?: number | undefined
  /** How long the lease may live in total, renewed or not. Default: `Infinity`. */
  readonly maxLife?: number | undefined
  /** This lease ends when its parent ends, whatever its own ttl. */
  readonly parent?: LeaseId | undefined
  readonly labels?: Labels | undefined
}

/** A claim to make on a key. */
export interface ClaimSpec {
  readonly key: Key
  /** Default: `exclusive`. */
  readonly mode?: Mode | undefined
  /** For a shared claim: it holds only if fewer than `limit` claims hold before it. */
  readonly limit?: number | undefined
  /** Any string. Others can read it. */
  readonly value?: string | undefined
}

export interface GrantRequest extends LeaseSpec {
  readonly claims?: readonly ClaimSpec[] | undefined
  readonly ifFree?: boolean | undefined
  /**
   * Whether the lease ends with the connection that it was granted on, on a store that `ties`. Other
   * stores have no connection to end, and ignore it.
   */
  readonly tied?: boolean | undefined
  readonly request?: RequestId | undefined
}

export interface Granted {
  readonly outcome: 'granted'
  readonly lease: LeaseId
  readonly revision: Revision
  /** The token of the first claims, and whether they all hold. Without claims: 0 and true. */
  readonly token: Token
  readonly holds: boolean
  readonly ahead: readonly Ahead[]
}

export interface ClaimRequest {
  readonly lease: LeaseId
  readonly claims: readonly ClaimSpec[]
  readonly ifFree?: boolean | undefined
  /** The token of this lease's claims on the same keys that this call replaces. Not with `ifFree`. */
  readonly replaces?: Token | undefined
  readonly request?: RequestId | undefined
}

export interface Claimed {
  readonly outcome: 'claimed'
  readonly revision: Revision
  readonly token: Token
  /** Whether the claim holds every key now. */
  readonly holds: boolean
  /** For each key that it does not hold yet: which claims are before it. */
  readonly ahead: readonly Ahead[]
}

/** The answer to `ifFree` if a key was not free. Nothing was changed. */
export interface Busy {
  readonly outcome: 'busy'
  readonly revision: Revision
  readonly ahead: readonly Ahead[]
}

/** The claims before a claim on a key: how many, and the first of them, which holds. */
export interface Ahead {
  readonly key: Key
  readonly count: number
  readonly first: Claim
}

export interface Renewed {
  /** Leases that have ended. */
  readonly lost: readonly Lost[]
  /** Leases that were renewed for less than their ttl because their life ends sooner. */
  readonly capped: readonly Capped[]
}

export interface Lost {
  readonly lease: LeaseId
  /** How it ended; `undefined` if the store does not know this lease, or no longer does. */
  readonly end: End | undefined
}

export interface Capped {
  readonly lease: LeaseId
  /** Milliseconds until the lease ends, grace included. */
  readonly remaining: number
  /** Who broke it and why; `undefined` if its own `maxLife` is the reason. */
  readonly end: End | undefined
}

export type RevokeTarget =
  /** One lease, with all its claims and all its descendants. */
  | { readonly lease: LeaseId }
  /** All children of this lease with all their descendants, but not the lease itself. */
  | { readonly parent: LeaseId }
  /** All claims on the keys with this prefix, or on one key; their leases stay alive. */
  | { readonly prefix: string }
  | { readonly key: Key; readonly token?: Token | undefined }

export interface RevokeRequest {
  readonly target: RevokeTarget
  /** Who revokes and why. The holders are notified of it, and the history keeps it. */
  readonly by?: string | undefined
  readonly why?: string | undefined
  /** Milliseconds until it takes effect. For leases only. Default: at once. */
  readonly after?: number | undefined
  readonly request?: RequestId | undefined
}

export interface Revoked {
  readonly revision: Revision
  /** The total number of leases ended (or given a final deadline) and of claims removed. */
  readonly leases: number
  readonly claims: number
  /** Some are left: call again. */
  readonly more: boolean
}

export interface ReleaseRequest {
  readonly lease: LeaseId
  readonly keys: readonly Key[]
  readonly token: Token
  readonly request?: RequestId | undefined
}

export interface UpdateRequest {
  readonly lease: LeaseId
  readonly key: Key
  readonly token: Token
  readonly value: string | undefined
  readonly request?: RequestId | undefined
}

export interface Changed {
  readonly revision: Revision
}

/** A claim as readers see it. */
export interface Claim {
  readonly key: Key
  readonly token: Token
  readonly lease: LeaseId
  readonly holder: string
  readonly mode: Mode
  readonly limit?: number | undefined
  readonly value?: string | undefined
  readonly claimedAt: Time
  /**
   * When the claim began to hold the key; `undefined` while it waits. After a restart the time may
   * be too early, but never before `claimedAt`.
   */
  readonly heldSince?: Time | undefined
  /** When the claim ends unless its lease is renewed, grace included. `Infinity` for never. */
  readonly until: Time
}

/** A lease as readers see it. */
export interface Lease {
  readonly id: LeaseId
  readonly holder: string
  readonly ttl: number
  readonly grace: number
  readonly labels: Labels
  readonly parent?: LeaseId | undefined
  readonly grantedAt: Time
  readonly renewedAt: Time
  /** When the lease ends unless it is renewed, grace included. */
  readonly until: Time
  /** When the lease ends even if it is renewed: `maxLife`, or a break. `Infinity` for never. */
  readonly endOfLife: Time
  /** How many claims and how many direct children it has. */
  readonly claims: number
  readonly children: number
}

/** A past period during which a claim held a key. */
export interface Tenure {
  readonly token: Token
  readonly holder: string
  readonly lease: LeaseId
  readonly heldSince: Time
  readonly endedAt: Time
  readonly end: End
}

export type Query =
  /** The claims on one key, in token order. */
  | { readonly key: Key; readonly limit?: number | undefined }
  /** The claimed keys with this prefix, sorted by name, each with its first claims. */
  | {
      readonly prefix: string
      readonly after?: Key | undefined
      readonly limit?: number | undefined
    }
  /** One lease with its claims. */
  | { readonly lease: LeaseId; readonly limit?: number | undefined }
  /** All leases, in no particular order. */
  | {
      readonly leases: true
      readonly after?: LeaseId | undefined
      readonly limit?: number | undefined
    }
  /** The past holders of this key, latest first. */
  | { readonly history: Key }

export type Reading<Q extends Query = Query> = Q extends { key: Key }
  ? KeyReading
  : Q extends { prefix: string }
    ? PrefixReading
    : Q extends { lease: LeaseId }
      ? LeaseReading
      : Q extends { leases: true }
        ? LeasesReading
        : HistoryReading

export interface KeyReading {
  readonly revision: Revision
  /** The claims in token order, at most `limit` of them. The first `holders` of them hold. */
  readonly claims: readonly Claim[]
  readonly holders: number
  /** How many claims the key has in total. */
  readonly count: number
}

export interface KeyEntry {
  readonly key: Key
  readonly claims: readonly Claim[]
  readonly holders: number
  readonly count: number
}

export interface PrefixReading {
  readonly revision: Revision
  /** For each key: all holders and the first waiting claim, at most `CLAIMS_SHOWN` claims. */
  readonly keys: readonly KeyEntry[]
  /** Some are left: read again with `after` set to the last key. */
  readonly more: boolean
}

export interface LeaseReading {
  readonly revision: Revision
  /** `undefined` if the lease has ended or the store does not know it. */
  readonly lease: Lease | undefined
  /** How it ended, if the store still knows. */
  readonly end: End | undefined
  readonly claims: readonly Claim[]
}

export interface LeasesReading {
  readonly revision: Revision
  readonly leases: readonly Lease[]
  /** Some are left: read again with `after` set to the last lease. */
  readonly more: boolean
}

export interface HistoryReading {
  readonly revision: Revision
  readonly tenures: readonly Tenure[]
}

/** How many claims of each key the reading of a prefix shows. */
export const CLAIMS_SHOWN = 16

/**
 * A change on a key. The events of a claim are `claimed`, then `held` when it begins to hold the
 * key, and `removed`; `updated` may come at any time in between. A claim that leaves the queue before
 * its turn has no `held`.
 *
 * A claim that holds at once has `claimed` and then `held` in one revision. At a hand-over, `held` is
 * in the revision that removed the claims before it, after all `removed` of that revision. A claim
 * on several keys has a `held` for each of them, and may hold some keys sooner than others.
 */
export interface Event {
  readonly revision: Revision
  readonly type: 'claimed' | 'held' | 'updated' | 'removed'
  readonly key: Key
  readonly token: Token
  readonly lease: LeaseId
  readonly holder: string
  readonly mode: Mode
  readonly limit?: number | undefined
  readonly value?: string | undefined
  /** For `removed`: how it ended. */
  readonly end?: End | undefined
  readonly at: Time
}

export type WatchTarget =
  /** Events on the keys with this prefix, after the revision `from`. Default: from now on. */
  | { readonly prefix: string; readonly from?: Revision | undefined }
  /** Changes that concern this lease. */
  | { readonly lease: LeaseId }

/** A claim of a watched lease. */
export interface OwnClaim {
  readonly key: Key
  readonly token: Token
  /** Whether the claim holds all the keys of its request. */
  readonly holds: boolean
}

/**
 * What a watch reports. A store may leave out what a later notice of a lease watch overtakes: that a
 * claim held, if it was removed; a deadline that was replaced; and everything before `gone`.
 */
export type Notice =
  /** The first notice of a prefix watch: it will report everything after this revision. */
  | { readonly type: 'watching'; readonly revision: Revision }
  /** Events of one or more revisions, in order. A revision is never split between two notices. */
  | { readonly type: 'events'; readonly revision: Revision; readonly events: readonly Event[] }
  /** The store no longer keeps the wanted revision. The watch is over. */
  | { readonly type: 'compacted'; readonly oldest: Revision }
  /** The first notice of a lease watch: all claims of the lease. */
  | { readonly type: 'standing'; readonly revision: Revision; readonly claims: readonly OwnClaim[] }
  /** A waiting claim of this lease now holds all its keys. */
  | { readonly type: 'holds'; readonly revision: Revision; readonly token: Token }
  /** A claim of this lease was removed by force. */
  | {
      readonly type: 'removed'
      readonly revision: Revision
      readonly key: Key
      readonly token: Token
      readonly end: End
    }
  /** This lease was given a final deadline, `remaining` milliseconds away. */
  | { readonly type: 'capped'; readonly remaining: number; readonly end: End | undefined }
  /** This lease has ended (`end` is `undefined` if the store does not know it). Watch over. */
  | { readonly type: 'gone'; readonly end: End | undefined }
  /** The watch was interrupted, by a fault or because the store was closed. Watch over. */
  | { readonly type: 'interrupted'; readonly error: LeaseholdError }

/** Called with each notice. It must return quickly and must not throw. */
export type Observer = (notice: Notice) => void

export interface Watch {
  close(): void
}

/** What a store promises, for programs and for people. */
export interface Guarantees {
  readonly engine: string
  /** The store runs in the caller's process: no call can get lost, so none needs a request id. */
  readonly inProcess: boolean
  /**
   * What an acknowledged change survives: `process` nothing beyond the process, `disk` a crash of
   * process and machine, `engine` what the engine's settings promise (see `notes`).
   */
  readonly durability: 'process' | 'disk' | 'engine'
  /** Across which events tokens never repeat and never decrease on a key. */
  readonly tokensSurvive: 'process' | 'restart' | 'failover'
  readonly ttl: { readonly min: number; readonly max: number; readonly step: number }
  /** How late an expiry can be, in milliseconds, if the machine is not overloaded. */
  readonly expiryLateness: number
  readonly childLeases: boolean
  /** A lease can be tied to the connection of its holder: `GrantRequest.tied`. */
  readonly ties?: true | undefined
  readonly requestsRemembered: number
  readonly eventsKept: number
  /** What else a user must know to trust the store, one sentence each. */
  readonly notes: readonly string[]
}
