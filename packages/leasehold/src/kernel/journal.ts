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
} from '../port/index.ts'
import type { Answer } from './requests.ts'

/**
 * What a kernel says of each change as it makes it, in the order in which it makes them: enough to
 * make the same kernel again. A kernel is rebuilt by telling a new one, through `Kernel.replay()`,
 * what the journal of the old one was told.
 *
 * Renewals are not told: a rebuilt kernel gives each lease its full ttl again.
 *
 * Everything told concerns one lease, named by its `slot`: a small integer that the lease keeps as
 * long as it lives and that another lease may get afterwards. `revision` is that of the change;
 * several changes may have the same one, and then they happened together.
 */
export interface Journal {
  granted(revision: Revision, slot: number, lease: GrantedLease): void
  /** The lease's life now ends at `endOfLife`. */
  capped(revision: Revision, slot: number, at: Time, endOfLife: Time, end: End): void
  /** The lease has ended and with it all its claims. Leases under it are told of one by one. */
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
  /** A call with a request id was answered. Concerns no lease. */
  answered(request: string, answer: Answer): void
  /** A past tenure of a key. Only a description of a kernel tells it; concerns no lease. */
  tenure(key: Key, tenure: Tenure): void
  /** A lease that ended, and how. Only a description of a kernel tells it. */
  remembered(lease: LeaseId, end: End): void
}

/**
 * The journal that rebuilds a kernel. It throws an `Error` if what it is told contradicts itself:
 * no kernel can have said so.
 */
export interface Replay extends Journal {
  /** A description covers all slots below this one, whether they have leases or not. */
  covers(slots: number): void
  /** Everything was told. Throws if leases are missing, or a lease is not younger than its parent. */
  check(): void
}

export interface GrantedLease {
  /** The revision at which it was granted: with the slot it makes the lease's id. */
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

/** A journal that does nothing with what it is told. */
export const SILENT_JOURNAL: Journal = {
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
