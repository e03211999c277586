import type { End } from '../../port/index.ts'
import type { Ledger } from '../ledger.ts'

const EXPIRED: End = { reason: 'expired' }
const MAX_LIFE_REACHED: End = { reason: 'expired', why: 'it reached the end of its maximum life' }

/** Ends a lease whose time is over, with all its descendants. */
export function expireLease(
  ledger: Ledger,
  slot: number,
  now: number,
  aged = isAtEndOfLife(ledger, slot),
): void {
  const { leases } = ledger.tables
  const end = aged ? (leases.cappedBy.get(slot) ?? MAX_LIFE_REACHED) : EXPIRED
  ledger.endLeases(++ledger.revision, leases.withDescendants(slot), now, end)
}

/** Whether its maximum life or a break comes before the end of its ttl. */
function isAtEndOfLife({ tables: { leases } }: Ledger, slot: number): boolean {
  return leases.deadline(slot) === leases.endOfLife.get(slot)
}
