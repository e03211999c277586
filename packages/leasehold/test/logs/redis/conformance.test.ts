import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { redisLog } from '../../../src/logs/redis/index.ts'
import { logConformance } from '../../../src/testing/index.ts'
import { describeWith, Engine, REDIS } from '../../engines/index.ts'
import { logSuite } from '../suites/log-suite.ts'

const nodeRedis = (port: number) => createClient({ socket: { port, host: '127.0.0.1' } })

describeWith(REDIS, 'the Redis log', () => {
  let engine: Engine
  let io: Redis
  let node: ReturnType<typeof nodeRedis>
  let namespaces = 0

  beforeAll(async () => {
    engine = await Engine.start(REDIS)
    io = new Redis({ port: engine.port, host: '127.0.0.1' })
    node = nodeRedis(engine.port)
    await node.connect()
  })

  afterAll(async () => {
    io?.disconnect()
    node?.destroy()
    await engine?.stop()
  })

  const create = async (client: () => Redis | typeof node) => {
    const namespace = `n${++namespaces}`
    return { open: () => redisLog(client(), { namespace }) }
  }

  describe('through ioredis', () => logSuite(() => create(() => io)))

  describe('through node-redis', { concurrent: true }, () => {
    for (const { name, run } of logConformance({ create: () => create(() => node) })) it(name, run)
  })
})
