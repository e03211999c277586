import { Cluster, Redis } from 'ioredis'
import { createCluster } from 'redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisClient, redisStore } from '../../../src/stores/redis/index.ts'
import { conformance } from '../../../src/testing/index.ts'
import { describeWith, Engine, REDIS_CLUSTER } from '../../engines/index.ts'

const HOST = '127.0.0.1'

function nodeRedis(port: number) {
  return createCluster({ rootNodes: [{ socket: { port, host: HOST } }] }).on('error', () => {})
}

/** In a cluster all keys of a namespace are in one slot, and any node passes messages on. */
describeWith(REDIS_CLUSTER, 'the Redis store in a cluster', () => {
  let engine: Engine
  let io: Cluster
  let node: ReturnType<typeof nodeRedis>
  let namespaces = 0

  beforeAll(async () => {
    engine = await Engine.start(REDIS_CLUSTER)
    const { port } = engine
    const plain = new Redis({ port, host: HOST })
    await plain.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16383)
    while (!String(await plain.call('CLUSTER', 'INFO')).includes('cluster_state:ok')) {
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    plain.disconnect()
    io = new Cluster([{ port, host: HOST }])
    node = nodeRedis(port)
    await node.connect()
  })

  afterAll(async () => {
    io?.disconnect()
    node?.destroy()
    await engine?.stop()
  })

  const open = async (client: RedisClient) => {
    const store = await redisStore(client, { namespace: `n${++namespaces}` })
    return { store, ttl: 2500 }
  }
  // Cases that do not depend on the kind of connection run elsewhere.
  const concerned = (client: () => RedisClient) =>
    conformance({ open: () => open(client()) }).filter(({ name }) =>
      /^(waiting|requests|watches: (?!an old)|closing)/.test(name),
    )

  describe('through ioredis', { concurrent: true }, () => {
    for (const { name, skip, run } of concerned(() => io)) it.skipIf(skip)(name, run)
  })

  describe('through node-redis', { concurrent: true }, () => {
    for (const { name, skip, run } of concerned(() => node)) it.skipIf(skip)(name, run)
  })

  it('does not promise that replicas have a change, because it uses many connections', async () => {
    for (const client of [io, node]) {
      const failed = redisStore(client as RedisClient, { replicas: 1 })
      await expect(failed).rejects.toMatchObject({ code: 'unsupported' })
    }
  })
})
