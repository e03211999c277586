import { describe, it } from 'vitest'
import type { Limits } from '../../src/port/index.ts'
import { conformance } from '../../src/testing/index.ts'
import { openReplicas } from './open-replicas.ts'

/** Small enough that every limit can be reached. */
const SMALL: Partial<Limits> = {
  keysPerClaim: 40,
  claimsPerLease: 30,
  claimsPerKey: 40,
  childrenPerLease: 12,
  leaseDepth: 4,
  events: 64,
  historyPerKey: 4,
}

describe('a replica on a log in memory', () => {
  const open = () => openReplicas(1, SMALL)
  for (const { name, skip, run } of conformance({ open, limits: SMALL })) {
    it.skipIf(skip)(name, run)
  }
})
