import fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, it } from 'vitest'
import { redisStore } from '../../../src/stores/redis/index.ts'
import {
  type Command,
  commandSequences,
  compareWithKernel,
  type Turn,
} from '../../../src/testing/index.ts'
import { describeWith, Engine, REDIS } from '../../engines/index.ts'
import { leftOpen } from '../../setup/changed-store.ts'

/** Shrinking waits for each missing notice. After this time it stops and reports its best example. */
const SHRINKING_MS = 60_000

describeWith(REDIS, 'the Redis store, given random commands', () => {
  let engine: Engine
  let client: Redis

  beforeAll(async () => {
    engine = await Engine.start(REDIS)
    client = new Redis({ port: engine.port, host: '127.0.0.1' })
  })

  afterAll(async () => {
    client?.disconnect()
    await engine?.stop()
  })

  it('behaves like the kernel', async () => {
    const sequences: fc.Arbitrary<Command[]> = commandSequences(fc)
    // All in one namespace: leftovers of one sequence must not affect the next.
    const open = async () => ({ store: await redisStore(client) })
    await fc.assert(
      fc.asyncProperty(sequences, (commands) => compareWithKernel(open, commands)),
      { numRuns: 150 },
    )
  }, 120_000)

  it('behaves like the kernel through two stores at once', async () => {
    const turns: fc.Arbitrary<Turn[]> = commandSequences(fc, { stores: 2 })
    const second = new Redis({ port: engine.port, host: '127.0.0.1' })
    const stores = [await redisStore(client), await redisStore(second)] as const
    const open = async () => ({ store: leftOpen(stores[0]), others: [leftOpen(stores[1])] })
    await fc.assert(
      fc.asyncProperty(turns, (commands) => compareWithKernel(open, commands)),
      { numRuns: 100, interruptAfterTimeLimit: SHRINKING_MS },
    )
    for (const store of stores) await store.close()
    second.disconnect()
  }, 120_000)
})
