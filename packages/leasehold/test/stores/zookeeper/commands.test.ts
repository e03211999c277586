import fc from 'fast-check'
import { afterAll, beforeAll, it } from 'vitest'
import { zookeeperStore } from '../../../src/stores/zookeeper/index.ts'
import { type Command, commandSequences, compareWithKernel } from '../../../src/testing/index.ts'
import { describeWith, Ensemble, ZOOKEEPER } from '../../engines/index.ts'

/** Comparisons that run at once: most of their time is waiting. */
const AT_ONCE = 8
const RUNS = 200

describeWith(ZOOKEEPER, 'the ZooKeeper store, given random commands', () => {
  let ensemble: Ensemble

  beforeAll(async () => {
    ensemble = await Ensemble.start()
  })

  afterAll(() => ensemble?.stop())

  it('does what the kernel does', async () => {
    const { servers } = ensemble
    let roots = 0
    const open = async () => ({
      store: await zookeeperStore({ servers, root: `/commands/${++roots}`, timeout: '30s' }),
    })
    const sequences: fc.Arbitrary<Command[]> = commandSequences(fc)
    const part = () =>
      fc.assert(
        fc.asyncProperty(sequences, (commands) => compareWithKernel(open, commands)),
        { numRuns: RUNS / AT_ONCE },
      )
    await Promise.all(Array.from({ length: AT_ONCE }, part))
  }, 120_000)
})
