import * as grpc from '@grpc/grpc-js'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { etcdStore } from '../../../src/stores/etcd/index.ts'
import { ETCD_LIMITS } from '../../../src/stores/etcd/options.ts'
import {
  type Command,
  commandSequences,
  compareWithKernel,
  type Turn,
} from '../../../src/testing/index.ts'
import { leftOpen } from '../../changed-store.ts'
import { describeWith, Engine, ETCD } from '../../engines/index.ts'

const sequences: fc.Arbitrary<Command[]> = commandSequences(fc, { length: 24 })
const turns: fc.Arbitrary<Turn[]> = commandSequences(fc, { length: 32, stores: 2 })
const SEQUENCES = 120
const TURNS = 80
const AT_ONCE = 8

/** A notice that is missing is waited for: what was shrunk until then is told all the same. */
const SHRINKING_MS = 60_000

describeWith(ETCD, 'the etcd store, given random commands', () => {
  let engine: Engine
  beforeAll(async () => {
    engine = await Engine.start(ETCD)
  }, 60_000)
  afterAll(() => engine.stop())

  const limits = { ...ETCD_LIMITS, history: 256 }
  const store = (prefix: string) =>
    etcdStore({ grpc, endpoints: [`127.0.0.1:${engine.port}`], prefix })
  const open = async () => ({ store: store('commands/') })

  // Several groups of sequences at once: each waits for etcd most of the time.
  describe.concurrent('does what the kernel does', () => {
    for (let group = 1; group <= AT_ONCE; group++) {
      it(`in group ${group}`, async () => {
        await fc.assert(
          fc.asyncProperty(sequences, (commands) => compareWithKernel(open, commands, { limits })),
          { numRuns: SEQUENCES / AT_ONCE },
        )
      }, 300_000)
    }
  })

  it('does so through two stores at once', async () => {
    const stores = [store('two/'), store('two/')] as const
    const openBoth = async () => ({ store: leftOpen(stores[0]), others: [leftOpen(stores[1])] })
    // What a claim came to that was made elsewhere may be noticed as late as after 10 s.
    const options = { limits, ownClaimsOnly: true }
    const part = () =>
      fc.assert(
        fc.asyncProperty(turns, (commands) => compareWithKernel(openBoth, commands, options)),
        { numRuns: TURNS / AT_ONCE, interruptAfterTimeLimit: SHRINKING_MS },
      )
    await Promise.all(Array.from({ length: AT_ONCE }, part))
    for (const each of stores) await each.close()
  }, 120_000)
})
