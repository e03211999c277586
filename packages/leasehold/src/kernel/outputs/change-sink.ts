import type {
  End,
  Key,
  Labels,
  LeaseId,
  Mode,
  Revision,
  Tenure,
  Time,
  Token,
} from '../../port/index.ts'
import type { Answer } from './answers.ts'

/**
 * Receives each change that a kernel makes, in order: enough to build the same kernel again. To
 * rebuild a kernel, give `Kernel.replay()` of a new one the changes of the old one.
 *
 * Renewals are not reported: a rebuilt kernel gives each lease its full ttl again.
 *
 * Almost every change concerns one lease, identified by its `slot`: a small integer that the lease
 * keeps while it lives and that another lease may get later. `revision` is that of the change.
 * Changes with the same revision happened together.
 */
export interface ChangeSink {
  granted(revision: Revision, slot: number, lease: GrantedLease): void
  /** The lease's life now ends at `endOfLife`. */
  capped(revision: Revision, slot: number, at: Time, endOfLife: Time, end: End): void
  /** The lease has ended with all its claims. Its descendants are reported one by one. */
  ended(revision: Revision, slot: number, at: Time, end: End): void
  claimed(revision: Revision, slot: number, claim: GrantedClaim): void
  updated(
    revision: Revision,
    slot: number,
    at: Time,
    key: Key,
    token: Token,
    value: string | undefined,
  ): void
  released(revision: Revision, slot: number, at: Time, key: Key, token: Token, end: End): void
  /** A call with a request id was answered. */
  answered(request: string, answer: Answer): void
  /** A past tenure of a key. Only the description of a kernel reports it. */
  tenure(key: Key, tenure: Tenure): void
  /** How a lease ended. Only the description of a kernel reports it. */
  remembered(lease: LeaseId, end: End): void
}

/**
 * The sink that rebuilds a kernel. It throws an `Error` if the changes contradict each other, which
 * those of a kernel never do.
 */
export interface Replay extends ChangeSink {
  /** A description covers all slots below this one, with or without leases. */
  covers(slots: number): void
  /** Call this last. Throws if leases are missing, or a lease is not younger than its parent. */
  check(): void
}

export interface GrantedLease {
  /** The revision of the grant. Together with the slot it is the lease's id. */
  readonly born: Revision
  readonly at: Time
  readonly holder: string
  readonly ttl: number
  readonly grace: number
  readonly endOfLife: Time
  /** The slot of its parent, or -1. */
  readonly parent: number
  readonly labels: Labels | undefined
}

export interface GrantedClaim {
  readonly at: Time
  readonly key: Key
  readonly token: Token
  readonly mode: Mode
  /** 0 for none. */
  readonly limit: number
  readonly value: string | undefined
  /** 0 while it waits. */
  readonly heldSince: Time
}

/** A sink that ignores every change. */
export const DISCARD_CHANGES: ChangeSink = {
  granted() {},
  capped() {},
  ended() {},
  claimed() {},
  updated() {},
  released() {},
  answered() {},
  tenure() {},
  remembered() {},
}
