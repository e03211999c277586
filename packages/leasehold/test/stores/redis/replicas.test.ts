import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, expect, it } from 'vitest'
import { redisStore } from '../../../src/stores/redis/index.ts'
import { describeWith, Engine, REDIS, redisReplica } from '../../engines/index.ts'
import { TcpProxy } from '../../faults/index.ts'

const HOST = '127.0.0.1'

function ioRedis(port: number) {
  const client = new Redis({ port, host: HOST, retryStrategy: () => 20 }).on('error', () => {})
  return { client, end: () => client.disconnect() }
}

async function nodeRedis(port: number) {
  const client = createClient({ socket: { port, host: HOST } }).on('error', () => {})
  await client.connect()
  return { client, end: () => client.destroy() }
}

/** WAIT is about the server that receives it, which may not be the one that wrote. */
describeWith(REDIS, 'an answer of Redis that waits for a replica', () => {
  const engines: Engine[] = []
  let line: TcpProxy

  const start = async (spec: typeof REDIS) => {
    const engine = await Engine.start(spec)
    engines.push(engine)
    return engine
  }
  const pair = async () => {
    const master = await start(REDIS)
    return { master, replica: await start(redisReplica(master.port)) }
  }

  afterAll(async () => {
    await line?.close()
    await Promise.all(engines.map((engine) => engine.stop()))
  })

  it.each([
    ['ioredis', ioRedis],
    ['node-redis', nodeRedis],
  ])('fails if another server replaced the first in the meantime (%s)', async (_, make) => {
    const [first, next] = await Promise.all([pair(), pair()])
    line = await TcpProxy.to(first.master.port)
    const { client, end } = await make(line.port)
    const store = await redisStore(client, { replicas: 1, replicasTimeout: 10_000 })
    first.replica.signal('SIGSTOP')
    const call = store.grant({ holder: 'alice', ttl: 60_000 })
    const failed = expect(call).rejects.toMatchObject({ code: 'unknown-outcome' })
    // The change is made and waits for the replica when another server replaces the master.
    const asked = new Redis({ port: first.master.port, host: HOST })
    await expect.poll(() => asked.info('clients')).toContain('blocked_clients:1')
    asked.disconnect()
    line.retarget(next.master.port)
    line.reset()
    line.heal()
    await failed
    await store.close()
    end()
  })
})
