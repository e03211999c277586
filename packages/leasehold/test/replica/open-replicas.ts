import { MemoryLog } from '../../src/log/index.ts'
import { DEFAULT_LIMITS, type LeaseStore, type Limits, systemRandom } from '../../src/port/index.ts'
import { replicaStore } from '../../src/replica/index.ts'
import { Replica } from '../../src/replica/replica.ts'
import { SEMANTICS } from '../../src/replica/state/machine.ts'
import { TestClock } from '../../src/testing/index.ts'

/**
 * Several replicas on one log in memory, all on one test clock. They save snapshots and trim the log
 * often.
 */
export async function openReplicas(count: number, limits: Partial<Limits>) {
  const log = new MemoryLog()
  const clock = new TestClock()
  const stores: LeaseStore[] = []
  for (let at = 0; at < count; at++) {
    stores.push(await replicaStore(log.open(), { clock, limits, coalesce: 0, snapshotBytes: 400 }))
  }
  const [store, ...others] = stores
  return {
    store: store!,
    others,
    advance: (ms: number) => clock.advance(ms),
    close: async () => {
      for (const each of others) await each.close()
    },
  }
}

/** A replica without a store. `semantics`: the version of the lease rules that it knows. */
export async function openReplica(shared: MemoryLog, clock: TestClock, semantics = SEMANTICS) {
  const replica = new Replica({
    ...{ log: shared.open(), clock, random: systemRandom },
    limits: { ...DEFAULT_LIMITS, history: 16 },
    ...{ timeout: 5000, coalesce: 0, snapshotBytes: 1 << 20, memberTtl: 30_000, tokensAbove: 0 },
    semantics,
  })
  await replica.open()
  return replica
}
