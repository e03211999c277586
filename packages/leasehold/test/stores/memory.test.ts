import { describe, it } from 'vitest'
import type { Limits } from '../../src/port/index.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { conformance, testStore } from '../../src/testing/index.ts'

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

describe('the memory store, on a clock that is moved', () => {
  const open = async () => {
    const { store, clock } = testStore({ limits: SMALL })
    return { store, advance: (ms: number) => clock.advance(ms) }
  }
  for (const { name, skip, run } of conformance({ open, limits: SMALL })) {
    it.skipIf(skip)(name, run)
  }
})

describe('the memory store, in real time', { concurrent: true }, () => {
  // Long enough for a machine that is busy with something else.
  const open = async () => ({ store: memoryStore(), ttl: 2500 })
  for (const { name, skip, run } of conformance({ open })) it.skipIf(skip)(name, run)
})
