// long because it is half prose: what each method promises stands beside its types.
import type { End, LeaseholdError } from './errors.ts'
import type { Mode } from './holds.ts'

/**
 * The port: what every store of leases promises, and what it does not.
 *
 * **The model.** A *lease* is a grant of time to a *holder*. A *key* is a name for anything that
 * can be held. A *claim* is a lease's place on a key, with a *token* that only ever goes up on that
 * key. A key is the list of its claims in the order of their tokens, and who holds it is a function
 * of that list alone: see `holds.ts`. To wait is to be in the list.
 *
 * **Three outcomes.** A call is *done* (its promise is fulfilled), *refused* (rejected with a
 * `LeaseholdError` whose `outcome` is `refused`: nothing was changed), or *unknown* (rejected with
 * one whose `outcome` is `unknown`: it may have been carried out, or may be yet). A call that was
 * not answered must never be taken for refused.
 *
 * **Time.** The store alone decides when a lease expires, on its own monotonic clock, and never
 * before `ttl + grace` has passed since it carried out the grant or the last renewal. Expiry is an
 * act of the store and not a fact of the clock: until the store has carried it out, a renewal
 * still saves the lease. A claim on a key makes the store carry out at once the expiry of whoever is
 * first in line there, if that is due. How late an expiry can otherwise be is in `guarantees`.
 *
 * **Revisions.** Every call that changes something does so in one step with a revision of its own,
 * and revisions only go up. Renewals change no revision. The end of a lease takes its claims and
 * the leases under it, with theirs, in the same revision.
 *
 * **Repetition.** A call may carry a request id. A second call with the same id changes nothing
 * and gets the first one's answer, a refusal included, as long as the store remembers it
 * (`guarantees.requestsRemembered`). Without an id a call that is sent twice is two calls.
 *
 * **Not promised.** A holder that is paused, or whose message is slow, may act after its lease has
 * ended: only the protected resource can refuse it, by the token. Revoking is not safe in the way
 * that expiry is: it takes effect at once, whatever the holder still believes.
 */
export interface LeaseStore {
  /** What this store promises; it does not change while the store is open. */
  readonly guarantees: Guarantees

  /**
   * Creates a lease, and with `claims` its first claims in the same step, so that a lock is taken
   * in one round trip. With `ifFree`, where the claims would not all hold at once, nothing is
   * created and the answer is `busy`.
   *
   * Refused: `invalid-argument`, `limit-exceeded`, `lease-not-found` or `lease-ended` (the parent).
   */
  grant(request: GrantRequest): Promise<Granted | Busy>

  /**
   * Gives each lease its full ttl again, counted from the moment that the store carries it out, but
   * never past the end of its life (`maxLife`, or a break). Never shortens a lease and never
   * changes a token. The answer lists only the exceptions: a lease that it does not name was
   * renewed for its whole ttl. Repeating it is harmless.
   *
   * A renewal need not be durable: a store that restarts gives every lease its full ttl.
   */
  renew(leases: readonly LeaseId[]): Promise<Renewed>

  /**
   * Ends leases by force, or removes claims: see `RevokeTarget`. With `after`, the leases are given
   * a last deadline instead, that no renewal can pass (a break with a period).
   *
   * Revoking a lease that has already ended is refused with `lease-ended`. Leases under a parent
   * and claims under a prefix may be many: one call ends at most `limits.page` of them, says so by
   * `more`, and may be called again.
   */
  revoke(request: RevokeRequest): Promise<Revoked>

  /**
   * Adds a claim on one key, or on several in one step: they get one token and one place in the
   * order on each key, which is why waiting for many keys at once cannot deadlock. The claim
   * either holds now (`holds`), or waits in line; `watch` on the lease tells when it holds.
   * With `ifFree`, where it would not hold every key at once, nothing is added and the answer is
   * `busy`.
   *
   * A lease may claim one key more than once; each claim has a token and a place of its own.
   *
   * Refused: `invalid-argument`, `limit-exceeded`, `lease-not-found`, `lease-ended`.
   */
  claim(request: ClaimRequest): Promise<Claimed | Busy>

  /**
   * Removes the claim of this lease with this token from the named keys; those who thereby come to
   * hold are told. Refused with `claim-not-found` where any of them is not there, and then
   * nothing is removed: an old token can never free what a newer one holds.
   */
  release(request: ReleaseRequest): Promise<Changed>

  /** Replaces the value of a claim. Refused with `claim-not-found` where it is not there. */
  update(request: UpdateRequest): Promise<Changed>

  /**
   * Reads a key, the keys of a prefix, a lease, all leases, or the history of a key; all that one
   * answer says was true together at the revision that it names. Long answers come in pages.
   */
  read<Q extends Query>(query: Q): Promise<Reading<Q>>

  /**
   * Watches the keys of a prefix, from now on or from a revision, or one's own lease.
   *
   * A prefix's events come in the order of their revisions, each once, without gaps, and all events
   * of one revision in one call. Where the wanted revision is no longer kept the answer is
   * `compacted`: read again and watch from the revision read. A lease's watch first tells how
   * things stand and then tells only what concerns it: a claim of its own that came to hold, one
   * that was taken from it, its own end. Nobody is told of every change on a contended key.
   *
   * The observer is never called before `watch` has returned, nor after its `close` was called. The
   * notices `compacted`, `gone` and `interrupted` are a watch's last: watch anew. Arguments that are
   * wrong, and a closed store, are thrown. Nothing is announced before it is as durable as
   * this store makes things.
   */
  watch(target: WatchTarget, observer: Observer): Watch

  /**
   * Stops: no call is carried out any more (each is refused with `closed`), watches end. Leases are
   * not ended by it. Closing twice does nothing.
   */
  close(): Promise<void>
}

/** A name for a lease. Unique for ever in its store; says nothing; not a secret. */
export type LeaseId = string
/** A name for anything that can be held, such as `gpu/0` or `services/embedder/i-42`. */
export type Key = string
/** The fencing token: a safe integer that only ever goes up on its key. Compare it as a number. */
export type Token = number
/** Counts the changes of a store; a safe integer. */
export type Revision = number
/** Names one call, so that repeating it is recognised. */
export type RequestId = string
/** A time on the store's own clock, in milliseconds near the Unix epoch: to show, not to compare. */
export type Time = number

export type Labels = Readonly<Record<string, string>>

/** What a lease is to be. Times are in milliseconds, and may be `Infinity` (but for `grace`). */
export interface LeaseSpec {
  /** Who: a name for people and for logs. */
  readonly holder: string
  /** How long the lease lives without a renewal. */
  readonly ttl: number
  /** How much longer the store keeps it before it takes its claims away. 0 if not given. */
  readonly grace?: number | undefined
  /** How long it may live in all, renewed or not. `Infinity` if not given. */
  readonly maxLife?: number | undefined
  /** A lease that it ends with, whatever its own ttl. */
  readonly parent?: LeaseId | undefined
  readonly labels?: Labels | undefined
}

/** A place to take on a key. */
export interface ClaimSpec {
  readonly key: Key
  /** `exclusive` if not given. */
  readonly mode?: Mode | undefined
  /** For a shared claim: holds only while fewer than so many hold before it. */
  readonly limit?: number | undefined
  /** Any text; others can read it. */
  readonly value?: string | undefined
}

export interface GrantRequest extends LeaseSpec {
  readonly claims?: readonly ClaimSpec[] | undefined
  readonly ifFree?: boolean | undefined
  readonly request?: RequestId | undefined
}

export interface Granted {
  readonly outcome: 'granted'
  readonly lease: LeaseId
  readonly revision: Revision
  /** The token of the first claims, and whether they all hold; where there were none, 0 and true. */
  readonly token: Token
  readonly holds: boolean
  readonly ahead: readonly Ahead[]
}

export interface ClaimRequest {
  readonly lease: LeaseId
  readonly claims: readonly ClaimSpec[]
  readonly ifFree?: boolean | undefined
  readonly request?: RequestId | undefined
}

export interface Claimed {
  readonly outcome: 'claimed'
  readonly revision: Revision
  readonly token: Token
  /** Whether it holds every key now. */
  readonly holds: boolean
  /** For each key that it does not hold yet: what stands before it. */
  readonly ahead: readonly Ahead[]
}

/** The answer to `ifFree` where it was not free. Nothing was changed. */
export interface Busy {
  readonly outcome: 'busy'
  readonly revision: Revision
  readonly ahead: readonly Ahead[]
}

/** What stands before a claim on a key: how many claims, and the first of them, which holds. */
export interface Ahead {
  readonly key: Key
  readonly count: number
  readonly first: Claim
}

export interface Renewed {
  /** Leases that are no more. */
  readonly lost: readonly Lost[]
  /** Leases that were renewed for less than their ttl, because their life ends sooner. */
  readonly capped: readonly Capped[]
}

export interface Lost {
  readonly lease: LeaseId
  /** How it ended, or `undefined` where the store does not know this lease (any more). */
  readonly end: End | undefined
}

export interface Capped {
  readonly lease: LeaseId
  /** Milliseconds until its life ends, grace included: it will then be gone. */
  readonly remaining: number
  /** By whom and why, where it was broken; `undefined` where it is its own `maxLife`. */
  readonly end: End | undefined
}

export type RevokeTarget =
  /** One lease, with all its claims and all leases under it. */
  | { readonly lease: LeaseId }
  /** All leases directly under this one, with all under them, but not this one itself. */
  | { readonly parent: LeaseId }
  /** All claims on the keys that begin with this, or those of one token; their leases live on. */
  | { readonly prefix: string }
  | { readonly key: Key; readonly token?: Token | undefined }

export interface RevokeRequest {
  readonly target: RevokeTarget
  /** Who asks, and why: told to the holders, and kept in the history. */
  readonly by?: string | undefined
  readonly why?: string | undefined
  /** Milliseconds until it takes effect. For leases only. At once if not given. */
  readonly after?: number | undefined
  readonly request?: RequestId | undefined
}

export interface Revoked {
  readonly revision: Revision
  /** How many leases were ended (or given a last deadline) and how many claims removed, in all. */
  readonly leases: number
  readonly claims: number
  /** There are more: call again. */
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

/** A claim as others see it. */
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
   * Since when it holds the key; `undefined` while it waits. A store that was restarted may tell a
   * time that is too early, but never one before it was claimed.
   */
  readonly heldSince?: Time | undefined
  /** When it will be gone unless its lease is renewed, grace included. `Infinity` for never. */
  readonly until: Time
}

/** A lease as others see it. */
export interface Lease {
  readonly id: LeaseId
  readonly holder: string
  readonly ttl: number
  readonly grace: number
  readonly labels: Labels
  readonly parent?: LeaseId | undefined
  readonly grantedAt: Time
  readonly renewedAt: Time
  /** When it will be gone unless renewed, grace included. */
  readonly until: Time
  /** When its life ends, renewed or not: `maxLife`, or a break. `Infinity` for never. */
  readonly endOfLife: Time
  /** How many claims it has and how many leases are directly under it. */
  readonly claims: number
  readonly children: number
}

/** One time that a key was held, now over. */
export interface Tenure {
  readonly token: Token
  readonly holder: string
  readonly lease: LeaseId
  readonly heldSince: Time
  readonly endedAt: Time
  readonly end: End
}

export type Query =
  /** The claims on one key, in order. */
  | { readonly key: Key; readonly limit?: number | undefined }
  /** The claimed keys that begin with this, by name, each with its first claims. */
  | {
      readonly prefix: string
      readonly after?: Key | undefined
      readonly limit?: number | undefined
    }
  /** One lease with its claims. */
  | { readonly lease: LeaseId; readonly limit?: number | undefined }
  /** All leases, in no order that means anything. */
  | {
      readonly leases: true
      readonly after?: LeaseId | undefined
      readonly limit?: number | undefined
    }
  /** Who held this key before, the latest first. */
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
  /** The claims in order, at most `limit` of them; the first `holders` hold. */
  readonly claims: readonly Claim[]
  readonly holders: number
  /** How many claims there are in all. */
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
  /** Of each key all holders and the first claim that waits, at most `CLAIMS_SHOWN` of them. */
  readonly keys: readonly KeyEntry[]
  /** There are more: read again with `after` the last key. */
  readonly more: boolean
}

export interface LeaseReading {
  readonly revision: Revision
  /** `undefined` where the store does not know this lease, or where it has ended. */
  readonly lease: Lease | undefined
  /** How it ended, where that is still known. */
  readonly end: End | undefined
  readonly claims: readonly Claim[]
}

export interface LeasesReading {
  readonly revision: Revision
  readonly leases: readonly Lease[]
  /** There are more: read again with `after` the last lease. */
  readonly more: boolean
}

export interface HistoryReading {
  readonly revision: Revision
  readonly tenures: readonly Tenure[]
}

/** How many claims of each key a prefix's reading shows. */
export const CLAIMS_SHOWN = 16

/** What happened on a key. */
export interface Event {
  readonly revision: Revision
  readonly type: 'claimed' | 'updated' | 'removed'
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
  /** Events on the keys that begin with this, after the revision `from` (from now on without it). */
  | { readonly prefix: string; readonly from?: Revision | undefined }
  /** What concerns this lease. */
  | { readonly lease: LeaseId }

/** A claim of a watched lease, as it stands. */
export interface OwnClaim {
  readonly key: Key
  readonly token: Token
  /** Whether the claim holds all the keys that it was made on. */
  readonly holds: boolean
}

export type Notice =
  /** The first notice of a prefix's watch: it sees everything after this revision. */
  | { readonly type: 'watching'; readonly revision: Revision }
  /** Events of one revision or several, in order; no revision is split between two notices. */
  | { readonly type: 'events'; readonly revision: Revision; readonly events: readonly Event[] }
  /** The revision asked for is not kept any more. The watch is over. */
  | { readonly type: 'compacted'; readonly oldest: Revision }
  /** The first notice of a lease's watch: all its claims. */
  | { readonly type: 'standing'; readonly revision: Revision; readonly claims: readonly OwnClaim[] }
  /** A claim of this lease that waited now holds all its keys. */
  | { readonly type: 'holds'; readonly revision: Revision; readonly token: Token }
  /** A claim of this lease was taken from it by force. */
  | {
      readonly type: 'removed'
      readonly revision: Revision
      readonly key: Key
      readonly token: Token
      readonly end: End
    }
  /** This lease's life was given a last deadline, `remaining` milliseconds away. */
  | { readonly type: 'capped'; readonly remaining: number; readonly end: End | undefined }
  /** This lease is no more (`end` is `undefined` where the store does not know it). Watch over. */
  | { readonly type: 'gone'; readonly end: End | undefined }
  /** The watch was broken off, by a fault or because the store was closed. Watch over. */
  | { readonly type: 'interrupted'; readonly error: LeaseholdError }

/** Called with each notice. It should return quickly and must not throw. */
export type Observer = (notice: Notice) => void

export interface Watch {
  close(): void
}

/** What a store promises, for programs and for people. */
export interface Guarantees {
  readonly engine: string
  /**
   * The store runs in the caller's own process: a call cannot be lost on the way, so that it needs
   * no request id.
   */
  readonly inProcess: boolean
  /**
   * What an answer survives: `process` nothing beyond the process, `disk` a crash of process and
   * machine, `engine` what the engine's own settings promise (see `notes`).
   */
  readonly durability: 'process' | 'disk' | 'engine'
  /** Tokens never repeat and never go down on a key, across restart and failover. */
  readonly tokensSurvive: 'process' | 'restart' | 'failover'
  readonly ttl: { readonly min: number; readonly max: number; readonly step: number }
  /** How late an expiry can be, in milliseconds, on a machine that is not overloaded. */
  readonly expiryLateness: number
  readonly childLeases: boolean
  readonly requestsRemembered: number
  readonly eventsKept: number
  /** What else a user must know to trust it, one sentence each. */
  readonly notes: readonly string[]
}
