import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, it } from 'vitest'
import type { Limits } from '../../../src/port/index.ts'
import { type RedisClient, redisStore } from '../../../src/stores/redis/index.ts'
import { conformance } from '../../../src/testing/index.ts'
import { describeWith, Engine, REDIS } from '../../engines/index.ts'

/** Small enough that a test can reach every limit. */
const SMALL: Partial<Limits> = {
  keysPerClaim: 40,
  claimsPerLease: 30,
  claimsPerKey: 40,
  childrenPerLease: 12,
  leaseDepth: 4,
  events: 64,
  historyPerKey: 4,
}

function nodeRedis(port: number) {
  return createClient({ socket: { port, host: '127.0.0.1' } })
}

describeWith(REDIS, 'the Redis store', () => {
  let engine: Engine
  let io: Redis
  let node: ReturnType<typeof nodeRedis>
  let namespaces = 0

  beforeAll(async () => {
    engine = await Engine.start(REDIS)
    const { port } = engine
    io = new Redis({ port, host: '127.0.0.1' })
    node = nodeRedis(port)
    await node.connect()
  })

  afterAll(async () => {
    io?.disconnect()
    node?.destroy()
    await engine?.stop()
  })

  const open = async (client: RedisClient) => {
    const store = await redisStore(client, { namespace: `n${++namespaces}`, limits: SMALL })
    // Long enough for a busy machine that runs all cases at once.
    return { store, ttl: 2500 }
  }

  describe('through ioredis', { concurrent: true }, () => {
    for (const { name, skip, run } of conformance({ open: () => open(io), limits: SMALL })) {
      it.skipIf(skip)(name, run)
    }
  })

  describe('through node-redis', { concurrent: true }, () => {
    for (const { name, skip, run } of conformance({ open: () => open(node), limits: SMALL })) {
      it.skipIf(skip)(name, run)
    }
  })
})
