import type { Limits } from '../port/index.ts'
import { ClaimTable } from './claim-table.ts'
import { KeyTable } from './key-table.ts'
import { LeaseTable } from './lease-table.ts'

/** What is true now: the leases, the keys, and the claims of the ones on the others. */
export class Tables {
  readonly leases = new LeaseTable()
  readonly claims = new ClaimTable()
  readonly keys: KeyTable

  constructor(limits: Limits) {
    this.keys = new KeyTable(limits.idleKeys)
  }

  /** Makes empty tables ones that can be read as the others were at this moment. */
  copy(from: Tables): void {
    this.leases.slots.copy(from.leases.slots)
    this.claims.slots.copy(from.claims.slots)
    this.keys.copy(from.keys)
  }
}
