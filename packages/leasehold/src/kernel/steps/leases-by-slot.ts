import type { End, LeaseId, Revision } from '../../port/index.ts'
import type { Ledger } from '../ledger.ts'
import { expireLease } from './expire.ts'

/** What ended a lease: its ttl and grace, or the end of its life (maximum life, or a break). */
export type ExpiryCause = 'ttl' | 'life'

/** The leases of a kernel by slot, for renewing and ending many at once. */
export class LeasesBySlot {
  readonly #ledger: Ledger

  constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  /** The slot of a living lease, or -1. */
  slotOf(id: LeaseId): number {
    return this.#ledger.tables.leases.find(id)
  }

  /** The revision of the grant of the lease in this slot; 0 if there is none. */
  born(slot: number): Revision {
    const { leases } = this.#ledger.tables
    return slot < leases.slots.end ? leases.born.get(slot) : 0
  }

  /** When the lease in this slot was granted or last renewed, by the kernel's clock. */
  renewedAt(slot: number): number {
    return this.#ledger.tables.leases.renewedAt.get(slot)
  }

  /** Restores the time of a renewal after a replay, which does not include renewals. */
  restoreRenewal(slot: number, time: number): void {
    this.#ledger.tables.leases.renewedAt.set(slot, time)
  }

  /** The break that limits the life of the lease in this slot, if any. */
  cappedBy(slot: number): End | undefined {
    return this.#ledger.tables.leases.cappedBy.get(slot)
  }

  /**
   * Renews the living lease in this slot. Returns how long it may still live: Infinity, unless its
   * maximum life or a break comes before the end of its ttl.
   */
  renew(slot: number, now: number): number {
    const { leases } = this.#ledger.tables
    leases.renewedAt.set(slot, now)
    const endOfLife = leases.endOfLife.get(slot)
    if (endOfLife === Infinity) return Infinity
    return leases.deadline(slot) === endOfLife ? Math.max(0, endOfLife - now) : Infinity
  }

  /**
   * With commanded expiry: ends these leases, each with all descendants, in its own revision. The
   * caller gives the cause, because the kernel has only times of several clocks.
   */
  expire(slots: readonly number[], now: number, over: ExpiryCause): void {
    const { leases } = this.#ledger.tables
    for (const slot of slots) {
      if (leases.born.get(slot) !== 0) expireLease(this.#ledger, slot, now, over === 'life')
    }
  }
}
