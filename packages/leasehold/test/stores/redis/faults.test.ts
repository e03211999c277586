import { Redis } from 'ioredis'
import { afterAll, describe, expect, it } from 'vitest'
import { memoryFence } from '../../../src/fence/index.ts'
import type { Granted } from '../../../src/port/index.ts'
import { redisStore } from '../../../src/stores/redis/index.ts'
import { describeWith, Engine, REDIS, redisReplica, redisSentinel } from '../../engines/index.ts'
import { Crowd, faultsOf, TcpProxy } from '../../faults/index.ts'
import type { Opening } from './open-redis.ts'

const MODULE = new URL('./open-redis.ts', import.meta.url)
const HOST = '127.0.0.1'
const engines: Engine[] = []

async function start(spec: typeof REDIS): Promise<Engine> {
  const engine = await Engine.start(spec)
  engines.push(engine)
  return engine
}

function gather(prefix: string, opening: Opening): Promise<Crowd> {
  return Crowd.gather({ module: MODULE, argument: JSON.stringify(opening), prefix, ttl: 1500 })
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** A master, a replica that has all its data, and the Sentinel that promotes the replica. */
async function pair() {
  const master = await start(REDIS)
  const replica = await start(redisReplica(master.port))
  await inStep(replica)
  const sentinel = await start(redisSentinel(master.port))
  await knows(sentinel, 'replicas', 1)
  return { master, replica, sentinel }
}

async function inStep({ port }: Engine): Promise<void> {
  const redis = new Redis({ host: HOST, port })
  while (!(await redis.info('replication')).includes('master_link_status:up')) await pause(20)
  redis.disconnect()
}

/** Waits until Sentinel has promoted the replica. */
async function replaced(sentinel: Engine, replica: Engine): Promise<void> {
  const redis = new Redis({ host: HOST, port: sentinel.port })
  const master = async () =>
    ((await redis.call('SENTINEL', 'get-master-addr-by-name', 'main')) as string[])[1]
  while ((await master()) !== String(replica.port)) await pause(20)
  redis.disconnect()
}

async function knows({ port }: Engine, what: string, count: number): Promise<void> {
  const redis = new Redis({ host: HOST, port })
  while (((await redis.call('SENTINEL', what, 'main')) as unknown[]).length < count) await pause(50)
  redis.disconnect()
}

describeWith(REDIS, 'the Redis store under faults', () => {
  describe('each with its own servers and processes', { concurrent: true }, () => {
    afterAll(async () => {
      await Promise.all(engines.map((engine) => engine.stop()))
    })

    it('keeps every promise when one durable Redis and its connections fail', async () => {
      const engine = await start(REDIS)
      const line = await TcpProxy.to(engine.port)
      const crowd = await gather('one/', { redis: { host: HOST, port: line.port } })
      await crowd.allHold()
      const [first, second] = crowd.members
      first!.freeze()
      await crowd.holdings(10)
      await engine.kill()
      await engine.restart()
      await crowd.holdings(10)
      first!.thaw()
      line.cut('to-client')
      await pause(2000)
      line.heal()
      second!.kill()
      await crowd.holdings(10)
      line.loseReplies()
      await crowd.until('a reply was lost', 10_000, () => line.repliesLost > 0)
      line.heal()
      line.reset()
      await pause(300)
      line.heal()
      await crowd.join()
      await crowd.allHold()
      expect(faultsOf(await crowd.leave())).toEqual([])
      await line.close()
    }, 90_000)

    it('keeps every promise when Redis is frozen for longer than leases live', async () => {
      const engine = await start(REDIS)
      const crowd = await gather('still/', { redis: { host: HOST, port: engine.port } })
      await crowd.allHold()
      engine.signal('SIGSTOP')
      await pause(3000)
      engine.signal('SIGCONT')
      await crowd.allHold()
      expect(faultsOf(await crowd.leave())).toEqual([])
    }, 90_000)

    it('never repeats a token in a failover, and loses only what its guarantees say', async () => {
      const { master, sentinel } = await pair()
      const sentinels = [{ host: HOST, port: sentinel.port }]
      const crowd = await gather('failover/', { redis: { sentinels, name: 'main' } })
      await crowd.holdings(20)
      await master.kill()
      await crowd.allHold()
      await master.restart()
      await crowd.holdings(20)
      const history = await crowd.leave()
      const lossy = ['two holders at once', 'an acknowledged lease that was lost'] as const
      expect(faultsOf(history, lossy)).toEqual([])
    }, 90_000)

    it('loses nothing in a failover if answers wait for the replica', async () => {
      const { master, replica, sentinel } = await pair()
      const sentinels = [{ host: HOST, port: sentinel.port }]
      const crowd = await gather('waits/', {
        redis: { sentinels, name: 'main' },
        store: { replicas: 1, replicasTimeout: 500 },
      })
      await crowd.holdings(20)
      await master.kill()
      await replaced(sentinel, replica)
      // The only replica is the master now. Until there is another, no answer is certain.
      await master.restart()
      await crowd.allHold(60_000)
      expect(faultsOf(await crowd.leave())).toEqual([])
    }, 120_000)

    it('gives a key to two holders if a failover loses the first, and a fence refuses the first', async () => {
      const master = await start(REDIS)
      const between = await TcpProxy.to(master.port)
      const replica = await start(redisReplica(between.port))
      await inStep(replica)
      const client = (engine: Engine) => new Redis({ host: HOST, port: engine.port })
      const [before, after] = [client(master), client(replica)]
      const store = await redisStore(before)
      const claims = [{ key: 'job' }]
      await store.grant({ holder: 'nobody', ttl: 60_000 })
      await before.wait(1, 5000)
      between.cut('both')
      const first = (await store.grant({ holder: 'first', ttl: 60_000, claims })) as Granted
      expect(first.holds).toBe(true)
      before.disconnect()
      await master.kill()
      await after.call('REPLICAOF', 'NO', 'ONE')
      const other = await redisStore(after)
      const second = (await other.grant({ holder: 'second', ttl: 60_000, claims })) as Granted
      expect(second.holds).toBe(true)
      expect(second.token).toBeGreaterThan(first.token)
      const fence = memoryFence()
      await fence.admit('job', second.token)
      await expect(fence.admit('job', first.token)).rejects.toMatchObject({ code: 'stale-token' })
      await Promise.all([store.close(), other.close()])
      after.disconnect()
      await between.close()
    }, 60_000)
  })
})
