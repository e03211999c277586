import fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, it } from 'vitest'
import { redisStore } from '../../src/stores/redis/index.ts'
import {
  compareConcurrently,
  concurrentSchedules,
  randomRuns,
  type Tick,
} from '../../src/testing/index.ts'
import { describeWith, Engine, REDIS } from '../engines/index.ts'
import { EngineDriver } from './engine-driver.ts'

const schedules: fc.Arbitrary<Tick<never>[]> = concurrentSchedules(fc, { stores: 2 })

describeWith(REDIS, 'two Redis stores, with concurrent calls', () => {
  let engine: Engine
  let clients: Redis[]
  let namespaces = 0

  beforeAll(async () => {
    engine = await Engine.start(REDIS)
    clients = [0, 1].map(() => new Redis({ port: engine.port, host: '127.0.0.1' }))
  })

  afterAll(async () => {
    for (const client of clients ?? []) client.disconnect()
    await engine?.stop()
  })

  it('behave like the kernel with the calls in some order', async () => {
    const open = async () => {
      const namespace = `run-${namespaces++}`
      const stores = await Promise.all(clients.map((client) => redisStore(client, { namespace })))
      return new EngineDriver(stores, 'run/')
    }
    await fc.assert(
      fc.asyncProperty(schedules, (schedule) => compareConcurrently(open, schedule)),
      randomRuns(80),
    )
  }, 240_000)
})
