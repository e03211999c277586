import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, it } from 'vitest'
import type { Limits } from '../../../src/port/index.ts'
import { fileStore } from '../../../src/stores/file/index.ts'
import {
  type Command,
  commandSequences,
  compareWithKernel,
  conformance,
  type Opened,
  TestClock,
} from '../../../src/testing/index.ts'

const SMALL: Partial<Limits> = {
  keysPerClaim: 40,
  claimsPerLease: 30,
  claimsPerKey: 40,
  childrenPerLease: 12,
  leaseDepth: 4,
  events: 64,
  history: 256,
}

/** Small files, so that the log uses several and snapshots are written. */
const FILES = { segmentBytes: 64 << 10, snapshotBytes: 32 << 10 }

async function open(clock: TestClock | undefined, limits: Partial<Limits>): Promise<Opened> {
  const folder = await mkdtemp(join(tmpdir(), 'leasehold-conformance-'))
  const store = await fileStore(folder, { ...FILES, clock, limits })
  return {
    store,
    advance: clock && ((ms) => clock.advance(ms)),
    close: () => rm(folder, { recursive: true }),
  }
}

describe('the file store, with a test clock', { concurrent: true }, () => {
  const moved = () => open(new TestClock(), SMALL)
  for (const { name, skip, run } of conformance({ open: moved, limits: SMALL })) {
    it.skipIf(skip)(name, run)
  }
})

describe('the file store, in real time', { concurrent: true }, () => {
  // Long enough for a busy machine.
  const real = async () => ({ ...(await open(undefined, SMALL)), ttl: 2500 })
  // The cases that do not depend on time have run above.
  const timed = conformance({ open: real, limits: SMALL }).filter(({ name }) =>
    /^(leases|families|revoking|waiting)/.test(name),
  )
  for (const { name, skip, run } of timed) it.skipIf(skip)(name, run)
})

describe('the file store, given random commands', () => {
  it('behaves like the kernel, to the millisecond', async () => {
    const sequences: fc.Arbitrary<Command[]> = commandSequences(fc)
    const limits = { history: 256 }
    await fc.assert(
      fc.asyncProperty(sequences, (commands) =>
        compareWithKernel(() => open(new TestClock(), limits), commands, { limits }),
      ),
      { numRuns: 40 },
    )
  }, 240_000)
})
