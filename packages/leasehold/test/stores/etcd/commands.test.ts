import * as grpc from '@grpc/grpc-js'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { etcdStore } from '../../../src/stores/etcd/index.ts'
import { ETCD_LIMITS } from '../../../src/stores/etcd/options.ts'
import { type Command, commandSequences, compareWithKernel } from '../../../src/testing/index.ts'
import { describeWith, Engine, ETCD } from '../../engines/index.ts'

const sequences: fc.Arbitrary<Command[]> = commandSequences(fc, { length: 24 })
const SEQUENCES = 200
const AT_ONCE = 8

describeWith(ETCD, 'the etcd store, given random commands', () => {
  let engine: Engine
  beforeAll(async () => {
    engine = await Engine.start(ETCD)
  }, 60_000)
  afterAll(() => engine.stop())

  const limits = { ...ETCD_LIMITS, history: 256 }
  const open = async () => ({
    store: etcdStore({ grpc, endpoints: [`127.0.0.1:${engine.port}`], prefix: 'commands/' }),
  })

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
})
