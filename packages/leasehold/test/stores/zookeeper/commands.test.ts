import fc from 'fast-check'
import { afterAll, beforeAll, it } from 'vitest'
import { zookeeperStore } from '../../../src/stores/zookeeper/index.ts'
import {
  type Command,
  commandSequences,
  compareWithKernel,
  type Turn,
} from '../../../src/testing/index.ts'
import { leftOpen } from '../../changed-store.ts'
import { describeWith, Ensemble, ZOOKEEPER } from '../../engines/index.ts'

/** Comparisons that run at once: most of their time is waiting. */
const AT_ONCE = 8
const RUNS = 120
const TURNS = 80

/** A notice that is missing is waited for: what was shrunk until then is told all the same. */
const SHRINKING_MS = 60_000

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

  it('does so through two stores at once', async () => {
    const stores = await Promise.all(
      ensemble.members.slice(1).map(({ port }) => {
        const servers = `127.0.0.1:${port}`
        return zookeeperStore({ servers, root: '/two', timeout: '30s' })
      }),
    )
    const [store, other] = stores.map(leftOpen)
    const open = async () => ({ store: store!, others: [other!] })
    const turns: fc.Arbitrary<Turn[]> = commandSequences(fc, { stores: 2 })
    // Of a claim that was made through another store a watch is told only when it begins.
    const options = { ownClaimsOnly: true }
    const part = () =>
      fc.assert(
        fc.asyncProperty(turns, (commands) => compareWithKernel(open, commands, options)),
        { numRuns: TURNS / AT_ONCE, interruptAfterTimeLimit: SHRINKING_MS },
      )
    await Promise.all(Array.from({ length: AT_ONCE }, part))
    for (const each of stores) await each.close()
  }, 120_000)
})
