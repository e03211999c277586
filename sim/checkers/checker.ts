import type { Capped, Claim, End, Event, LeaseId } from 'leasehold/port'
import type {
  Call,
  Family,
  ForcedEnd,
  Holding,
  LeaseRecord,
  Step,
  WatchRecord,
  Write,
} from './history.js'
import type { Observation } from './observation.js'

/** What a checker may know of the world that no client can: how fast its clocks run. */
export interface Truth {
  readonly now: number
  /** The rate of the server's clock; of the fastest one, if there are several servers. */
  readonly serverRate: number
  readonly slowestRate: number
  /** When the server's latest process began to serve. */
  readonly serverStart: number
  /** Lives that were bounded before this may have been prolonged by a restart, or by a cut-off log. */
  readonly prolonged: number
  /** How far a replica was behind its log at most since this time; 0 if there is none. */
  readonly lag: (since: number) => number
  /** When the process before that came to its end. */
  readonly serverEnd: number
  readonly drift: number
  /** The longest that a message can be in flight. */
  readonly delay: number
}

/**
 * Watches one invariant. It receives what clients receive, at the same time; whatever it finds
 * wrong it gives to `violated`.
 */
export interface Checker {
  /** The invariant's number and what it says, in a few words. */
  readonly name: string
  held?(holding: Holding, others: readonly Holding[], truth: Truth): void
  /** A client saw that it had lost a lock, and later that it had not. */
  revived?(client: string, state: string): void
  /** A lock that was lost was taken back. */
  reclaimed?(keys: readonly string[], lost: number, token: number): void
  wrote?(write: Write): void
  /** A client was notified that its lease is gone. */
  gone?(lease: LeaseRecord, end: End | undefined, truth: Truth): void
  /** The store has announced that a claim was removed. A client knows the lease. */
  removed?(event: Event, lease: LeaseRecord, truth: Truth): void
  /** A client was notified that something that it held, or waited for, is lost. */
  lost?(loss: LossRecord, truth: Truth): void
  called?(call: Call, truth: Truth): void
  /** A call that had been answered was answered once more. */
  repeated?(call: Call): void
  /** A client received a revision, in the answer to a call that it made at `invoked`. */
  revision?(revision: number, invoked: number, truth: Truth): void
  /** Leases were renewed, or reported as lost. */
  renewed?(renewal: Renewal, truth: Truth): void
  /** A second process tried to own the disk and was not refused as it should be. */
  secondOwner?(outcome: string): void
  read?(reading: KeyRead, truth: Truth): void
  leaseRead?(reading: LeaseRead): void
  /** In the healed world this took so long; at most `bound` was promised. */
  progressed?(what: string, took: number, bound: number): void
  /** A lease that still exists at the end. It has no record if no client knows of it. */
  remains?(lease: LeaseId, record: LeaseRecord | undefined, read: number, truth: Truth): void
  /** All is over. */
  finish?(history: History): void
}

/** What a client said of a loss. */
export interface LossRecord {
  readonly client: string
  readonly lease: LeaseRecord
  readonly keys: readonly string[]
  readonly reason: string | undefined
  readonly by: string | undefined
  readonly why: string | undefined
}

export interface History {
  readonly observations: readonly Observation[]
  readonly steps: readonly Step[]
  readonly forcedEnds: readonly ForcedEnd[]
  /** All that was ever held through the client. */
  readonly holdings: readonly Holding[]
  readonly calls: readonly Call[]
  readonly watches: readonly WatchRecord[]
  /** What everybody who watches must have seen: the last revision that was announced in time. */
  readonly announced: number
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
  readonly capped: Capped | undefined
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
