import { MemoryLog } from '../../src/log/index.ts'
import type { LeaseStore, Limits } from '../../src/port/index.ts'
import { replicaStore } from '../../src/replica/index.ts'
import { TestClock } from '../../src/testing/index.ts'

/**
 * Several replicas on one log in memory, all on one clock that is moved. Snapshots are taken and the
 * log is trimmed again and again.
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
