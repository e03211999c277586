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
}
