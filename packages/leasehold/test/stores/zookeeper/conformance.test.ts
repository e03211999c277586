import { afterAll, beforeAll, describe, it } from 'vitest'
import type { Limits } from '../../../src/port/index.ts'
import { zookeeperStore } from '../../../src/stores/zookeeper/index.ts'
import { conformance } from '../../../src/testing/index.ts'
import { describeWith, Ensemble, ZOOKEEPER } from '../../engines/index.ts'

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

describeWith(ZOOKEEPER, 'the ZooKeeper store', () => {
  let ensemble: Ensemble
  let roots = 0

  beforeAll(async () => {
    ensemble = await Ensemble.start()
  })

  afterAll(() => ensemble?.stop())

  const open = async () => {
    const { servers } = ensemble
    return { store: await zookeeperStore({ servers, root: `/c${++roots}`, limits: SMALL }) }
  }

  describe('on an ensemble of three', { concurrent: true }, () => {
    // Sessions that begin and end are transactions too: the ensemble's number never stands still.
    for (const { name, skip, run } of conformance({ open, limits: SMALL, shared: true })) {
      it.skipIf(skip)(name, run, 60_000)
    }
  })
})
