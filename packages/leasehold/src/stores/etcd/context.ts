import type { Clock, Key, LeaseId, Limits, Random, Token } from '../../port/index.ts'
import type { Api } from './api.ts'
import type { JointTxns } from './joint-txns.ts'
import type { Known, KnownLease } from './known.ts'
import type { Layout } from './layout.ts'
import type { Memory, RequestMemory } from './memory.ts'

/** What the calls of one store share. */
export interface Context {
  readonly api: Api
  readonly joint: JointTxns
  readonly layout: Layout
  readonly clock: Clock
  readonly random: Random
  readonly limits: Limits
  readonly known: Known
  readonly requests: RequestMemory
  /** For how leases and claims ended. */
  readonly ends: Memory
  /** Names for claims, none of which is given twice. */
  readonly nonce: () => string
  readonly news: News
}

/** Told by the calls of this process, so that a watch on a lease need not ask etcd for its claims. */
export interface News {
  /** A lease has claims that wait. Answers whether anybody here watches it. */
  waits(lease: LeaseId, token: Token, revision: number, places: readonly Place[]): boolean
  /** Whether all that happens to this lease is being told to this process. */
  watches(lease: LeaseId): boolean
  released(lease: LeaseId, token: Token, keys: readonly Key[]): void
  /** A lease's life has an end, at this time on this process's clock. */
  limited(known: KnownLease, at: number): void
}

/** A claim's place on a key: its name in etcd, and the names of those before it, in their order. */
export interface Place {
  readonly key: Key
  readonly name: string
  readonly before: readonly string[]
  readonly holds: boolean
}
