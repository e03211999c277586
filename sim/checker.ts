import type { Claim, End, LeaseId } from 'leasehold/port'
import type { Call, Family, Holding, LeaseRecord, WatchRecord, Write } from './history.js'

/** What a checker may know of the world that no client can: how fast its clocks run. */
export interface Truth {
  readonly now: number
  readonly serverRate: number
  /** When the server's latest process began to serve. */
  readonly serverStart: number
  /** When the process before that came to its end. */
  readonly serverEnd: number
  readonly drift: number
  /** The longest that a message can be under way. */
  readonly delay: number
}

/**
 * Watches one invariant. It hears what clients are told, as they are told it; whatever it finds
 * wrong it gives to `violated`.
 */
export interface Checker {
  /** The invariant's number and what it says, in a few words. */
  readonly name: string
  held?(holding: Holding, others: readonly Holding[], truth: Truth): void
  /** A client saw that it had lost a lock, and later that it had not. */
  revived?(client: string, state: string): void
  wrote?(write: Write): void
  /** A client was told that its lease is gone. */
  gone?(lease: LeaseRecord, end: End | undefined, truth: Truth): void
  called?(call: Call, truth: Truth): void
  /** A call that had been answered was answered once more. */
  repeated?(call: Call): void
  /** A client was told of a revision, by an answer to a call that it made at `invoked`. */
  revision?(revision: number, invoked: number, truth: Truth): void
  /** Leases were renewed, or told to be lost. */
  renewed?(renewal: Renewal, truth: Truth): void
  /** A second process tried to own the disk and was not refused as it should be. */
  secondOwner?(outcome: string): void
  read?(reading: KeyRead, truth: Truth): void
  leaseRead?(reading: LeaseRead): void
  /** The system is whole again, and this took so long where at most `bound` was promised. */
  progressed?(what: string, took: number, bound: number): void
  /** A lease that is still there in the end; without a record where nobody knows that they have it. */
  remains?(lease: LeaseId, record: LeaseRecord | undefined, read: number, truth: Truth): void
  /** All is over. */
  finish?(history: History): void
}

export interface History {
  readonly calls: readonly Call[]
  readonly watches: readonly WatchRecord[]
  readonly families: readonly Family[]
}

/** One lease in the answer to a renewal. */
export interface Renewal {
  readonly lease: LeaseRecord
  readonly sent: number
  /** The lease's `renewedFrom` when this was sent. */
  readonly knownAtSending: number
  readonly lost: boolean
  readonly end: End | undefined
}

/** A key as a client read it. */
export interface KeyRead {
  readonly key: string
  readonly revision: number
  readonly invoked: number
  readonly claims: readonly Pick<Claim, 'token' | 'lease' | 'mode'>[]
  readonly holders: number
}

/** A lease as its client read it. */
export interface LeaseRead {
  readonly lease: LeaseId
  readonly ttl: number
  readonly grace: number
  readonly renewedAt: number
  readonly until: number
  readonly tokens: readonly number[]
  /** How many of its claims have not been answered, and may be among the tokens. */
  readonly unanswered: number
}

export interface Violation {
  readonly checker: string
  readonly message: string
  readonly time: number
}

export type Violated = (message: string) => void
