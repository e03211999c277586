import type { End, LeaseId, Revision } from '../port/index.ts'
import type { Ledger } from './ledger.ts'
import { expireLease } from './places.ts'

/** What ends a lease: its ttl and grace, or its maximum life or the period of a break. */
export type TimeOver = 'ttl' | 'life'

/** The leases of a kernel by their slots, for whoever renews and ends many of them at once. */
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

  /** When the lease in this slot was granted or last renewed, on the clock that the kernel was given. */
  renewedAt(slot: number): number {
    return this.#ledger.tables.leases.renewedAt.get(slot)
  }

  /** After a replay, of which renewals are no part: puts back when a lease was renewed. */
  restoreRenewal(slot: number, time: number): void {
    this.#ledger.tables.leases.renewedAt.set(slot, time)
  }

  /** The break that limits the life of the lease in this slot, if one does. */
  cappedBy(slot: number): End | undefined {
    return this.#ledger.tables.leases.cappedBy.get(slot)
  }

  /**
   * Renews the living lease in this slot. Returns how long it may live at most, which is infinite
   * unless its maximum life or a break comes before its ttl is over.
   */
  renew(slot: number, now: number): number {
    const { leases } = this.#ledger.tables
    leases.renewedAt.set(slot, now)
    const endOfLife = leases.endOfLife.get(slot)
    return leases.deadline(slot) === endOfLife ? Math.max(0, endOfLife - now) : Infinity
  }

  /**
   * With commanded expiry: ends these leases, each with all under it, in a revision of its own. Whoever
   * commands it says which time has passed, because the kernel has only the times of several clocks.
   */
  expire(slots: readonly number[], now: number, over: TimeOver): void {
    const { leases } = this.#ledger.tables
    for (const slot of slots) {
      if (leases.born.get(slot) !== 0) expireLease(this.#ledger, slot, now, over === 'life')
    }
  }
}
