import fc from 'fast-check'
import { describe, it } from 'vitest'
import type { LeaseStore, Limits } from '../../../src/port/index.ts'
import { replicaStore } from '../../../src/replica/index.ts'
import {
  type CreatedLog,
  commandSequences,
  compareWithKernel,
  conformance,
  logConformance,
  type Turn,
} from '../../../src/testing/index.ts'

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

/** A small history: the room for a large one takes longer to make than a sequence to run. */
const limits: Partial<Limits> = { history: 256 }

export interface SuiteOptions {
  /** The store conformance cases to run, if an engine is too slow for all of them. */
  readonly cases?: RegExp
  /** Random sequences, for each number of replicas. */
  readonly runs?: number
  /** Small, so that snapshots are saved and the log is trimmed again and again. */
  readonly snapshotBytes?: number
}

/**
 * The tests of every log on a real engine: the log conformance suite, and on replicas the store
 * conformance suite and random commands compared with the kernel. `create` prepares a new, empty
 * log.
 */
export function logSuite(
  create: () => Promise<CreatedLog>,
  { cases = /./, runs = 10, snapshotBytes = 2000 }: SuiteOptions = {},
): void {
  describe('as a log', { concurrent: true }, () => {
    for (const { name, run } of logConformance({ create })) it(name, run, 60_000)
  })

  describe('with a replica on it', { concurrent: true }, () => {
    const open = async () => {
      const { stores, close } = await openReplicas(create, 1, SMALL, snapshotBytes)
      return { store: stores[0]!, ttl: 2500, close }
    }
    for (const { name, skip, run } of conformance({ open, limits: SMALL })) {
      if (cases.test(name)) it.skipIf(skip)(name, run, 60_000)
    }
  })

  it.each([1, 2, 3])(
    'agrees with the kernel, through %s replicas, for random commands',
    async (count) => {
      const turns: fc.Arbitrary<Turn[]> = commandSequences(fc, { stores: count })
      const open = async () => {
        const { stores, close } = await openReplicas(create, count, limits, snapshotBytes)
        const [store, ...others] = stores
        return { store: store!, others, close }
      }
      await fc.assert(
        fc.asyncProperty(turns, (commands) => compareWithKernel(open, commands, { limits })),
        { numRuns: runs, interruptAfterTimeLimit: 60_000 },
      )
    },
    120_000,
  )
}

async function openReplicas(
  create: () => Promise<CreatedLog>,
  count: number,
  ofStore: Partial<Limits>,
  snapshotBytes: number,
) {
  const created = await create()
  const stores: LeaseStore[] = []
  for (let at = 0; at < count; at++) {
    const options = { limits: ofStore, coalesce: 0, snapshotBytes }
    stores.push(await replicaStore(await created.open(), options))
  }
  const close = async () => {
    for (const store of stores) await store.close()
    await created.remove?.()
  }
  return { stores, close }
}
