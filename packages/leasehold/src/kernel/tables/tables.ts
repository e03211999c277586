import type { Limits } from '../../port/index.ts'
import { ClaimTable } from './claim-table.ts'
import { KeyTable } from './key-table.ts'
import { LeaseTable } from './lease-table.ts'

/** The current state: the leases, the keys, and the claims of leases on keys. */
export class Tables {
  readonly leases = new LeaseTable()
  readonly claims = new ClaimTable()
  readonly keys: KeyTable

  constructor(limits: Limits) {
    this.keys = new KeyTable(limits.idleKeys)
  }

  /** Copies the other tables into these empty ones, for reading only. */
  copy(from: Tables): void {
    this.leases.slots.copy(from.leases.slots)
    this.claims.slots.copy(from.claims.slots)
    this.keys.copy(from.keys)
  }
}
