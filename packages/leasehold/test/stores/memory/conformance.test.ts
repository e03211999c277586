import { describe, it } from 'vitest'
import type { Limits } from '../../../src/port/index.ts'
import { conformance, testStore } from '../../../src/testing/index.ts'

/** Small enough that a test can reach every limit, and large enough for all other tests. */
const SMALL: Partial<Limits> = {
  keysPerClaim: 40,
  claimsPerLease: 30,
  claimsPerKey: 40,
  childrenPerLease: 12,
  leaseDepth: 4,
  events: 64,
  history: 256,
  historyPerKey: 4,
}

describe('the memory store, with a test clock', () => {
  const open = async () => {
    const { store, clock } = testStore({ limits: SMALL })
    return { store, advance: (ms: number) => clock.advance(ms) }
  }
  for (const { name, skip, run } of conformance({ open, limits: SMALL })) {
    it.skipIf(skip)(name, run)
  }
})
