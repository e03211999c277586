import fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, it } from 'vitest'
import { redisStore } from '../../../src/stores/redis/index.ts'
import { type Command, commandSequences, compareWithKernel } from '../../../src/testing/index.ts'
import { describeWith, Engine, REDIS } from '../../engines/index.ts'

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

  it('does what the kernel does', async () => {
    const sequences: fc.Arbitrary<Command[]> = commandSequences(fc)
    // All in one namespace: what one sequence leaves behind must not matter to the next.
    const open = async () => ({ store: await redisStore(client) })
    await fc.assert(
      fc.asyncProperty(sequences, (commands) => compareWithKernel(open, commands)),
      { numRuns: 250 },
    )
  }, 120_000)
})
