import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type RedisLogOptions, redisLog } from '../../../src/logs/redis/index.ts'
import { replicaStore } from '../../../src/replica/index.ts'
import { Recorder } from '../../../src/testing/log-conformance/recorder.ts'
import { describeWith, Engine, REDIS, redisReplica } from '../../engines/index.ts'
import { faultSuite, take, takeAndFree } from '../suites/fault-suite.ts'

function connectTo(port: number): Redis {
  const options = { retryStrategy: () => 50, maxRetriesPerRequest: null }
  return new Redis({ port, host: '127.0.0.1', ...options }).on('error', () => {})
}

async function openAt(port: number, options: RedisLogOptions) {
  const client = connectTo(port)
  const log = await redisLog(client, { timeout: 2000, ...options })
  return { log, end: async () => client.disconnect() }
}

describeWith(REDIS, 'the Redis log, when the server', () => {
  faultSuite({ spec: REDIS, open: (port, namespace) => openAt(port, { namespace }) })
})

describeWith(REDIS, 'the Redis log', () => {
  let engine: Engine
  let client: Redis

  beforeAll(async () => {
    engine = await Engine.start(REDIS)
    client = connectTo(engine.port)
  })

  afterAll(async () => {
    client?.disconnect()
    await engine?.stop()
  })

  it('recognises a deleted stream, and continues with another', async () => {
    const log = await redisLog(client, { namespace: 'deleted' })
    const last = await log.append(Buffer.from('a'))
    const follower = new Recorder(log, 0, 15_000)
    await follower.until(1)
    await client.del('{deleted}:entries')
    await expect(log.append(Buffer.from('b'))).rejects.toMatchObject({ code: 'unknown-outcome' })
    await expect(log.tail()).rejects.toMatchObject({ code: 'unknown-outcome' })
    expect(await follower.untilEnded()).toEqual({ cause: 'ahead', tail: 0 })
    // Another process creates the stream again and reaches the same position: it is another stream.
    const other = await redisLog(client, { namespace: 'deleted' })
    await other.append(Buffer.from('c'))
    expect(await new Recorder(log, last, 15_000).untilEnded()).toEqual({ cause: 'ahead', tail: 1 })
    expect(await log.append(Buffer.from('d'))).toBe(2)
    const again = new Recorder(log, 0, 15_000)
    await again.until(2)
    expect(again.texts).toEqual(['c', 'd'])
    again.close()
  })

  it('does not confuse the entries of another stream with its own', async () => {
    const log = await redisLog(client, { namespace: 'anew' })
    const follower = new Recorder(log, await log.append(Buffer.from('a')), 15_000)
    const key = '{anew}:entries'
    // The stream is lost and made again at one moment, while the follower waits for its next entry.
    await expect.poll(() => client.info('clients')).toMatch(/blocked_clients:[1-9]/)
    const anew = client.multi().del(key).xadd(key, '9999999999999-0', 'leasehold', '1')
    await anew.xadd(key, '9999999999999-2', 'e', 'other').exec()
    expect(await follower.untilEnded()).toEqual({ cause: 'ahead', tail: 2 })
    expect(follower.entries).toEqual([])
  })

  it('continues after the snapshot if only the stream was deleted', async () => {
    const log = await redisLog(client, { namespace: 'kept' })
    for (const text of ['a', 'b', 'c']) await log.append(Buffer.from(text))
    await log.saveSnapshot({ position: 2, chunks: [Buffer.from('s')] })
    await client.del('{kept}:entries')
    const other = await redisLog(client, { namespace: 'kept' })
    expect(await other.tail()).toBe(2)
    expect(await other.append(Buffer.from('d'))).toBe(3)
  })

  it('is recovered by its replicas when all data are deleted: tokens keep rising', async () => {
    const options = { namespace: 'flushed' }
    const store = await replicaStore(await redisLog(client, options), { timeout: 30_000 })
    const before = await take(store, 'held')
    await client.flushall()
    expect(await takeAndFree(store, 'after')).toBeGreaterThan(before)
    await store.close()
  }, 60_000)

  it('refuses a key of something else, a full Redis and a damaged snapshot', async () => {
    await client.set('{other}:entries', 'x')
    await expect(redisLog(client, { namespace: 'other' })).rejects.toMatchObject({
      code: 'unsupported',
      message: expect.stringContaining('{other}:entries'),
    })
    const log = await redisLog(client, { namespace: 'full' })
    await log.saveSnapshot({ position: 3, chunks: [Buffer.from('one')] })
    const names = await client.hkeys('{full}:entries:snapshots')
    await client.hset('{full}:entries:snapshots', names.find((name) => name.endsWith('.0'))!, 'two')
    await expect(log.loadSnapshot()).rejects.toMatchObject({ code: 'storage-damaged' })
    await client.config('SET', 'maxmemory', '1')
    await expect(log.append(Buffer.from('a'))).rejects.toMatchObject({ code: 'storage-full' })
    await client.config('SET', 'maxmemory', '0')
    await log.append(Buffer.from('a'))
  })

  it('refuses a user without rights, and one without a password', async () => {
    await client.call('ACL', 'SETUSER', 'some', 'on', '>x', '~*', '+@all', '-xadd')
    const some = client.duplicate({ username: 'some', password: 'x' })
    await expect(redisLog(some, { namespace: 'new' })).rejects.toMatchObject({ code: 'forbidden' })
    some.disconnect()
    await client.config('SET', 'requirepass', 'secret')
    const nobody = connectTo(engine.port)
    await expect(redisLog(nobody)).rejects.toMatchObject({ code: 'unauthenticated' })
    nobody.disconnect()
  })

  it('reports a read-only replica, with the fix', async () => {
    const replica = await Engine.start(redisReplica(engine.port))
    const only = connectTo(replica.port)
    await expect(redisLog(only, { namespace: 'only' })).rejects.toMatchObject({
      code: 'timeout',
      message: expect.stringContaining('connect to the master'),
    })
    only.disconnect()
    await replica.stop()
  })

  it('refuses to open if Redis cannot be reached', async () => {
    const away = new Redis({ port: 1, host: '127.0.0.1' }).on('error', () => {})
    await expect(redisLog(away, { timeout: 300 })).rejects.toMatchObject({ code: 'timeout' })
    away.disconnect()
  })
})

describeWith(REDIS, 'the Redis log with a replica', () => {
  it('acknowledges an entry when the replica has it, and not before', async () => {
    const master = await Engine.start(REDIS)
    const replica = await Engine.start(redisReplica(master.port))
    const { log, end } = await openAt(master.port, { replicas: 1, replicasTimeout: 5000 })
    await log.append(Buffer.from('both'))
    const copy = connectTo(replica.port)
    expect(await copy.xlen('{leasehold}:entries')).toBe(2)
    await replica.freeze()
    const hasty = await openAt(master.port, { replicas: 1, replicasTimeout: 100 })
    await expect(hasty.log.append(Buffer.from('one'))).rejects.toMatchObject({
      code: 'unknown-outcome',
      message: expect.stringContaining('0 of 1 replicas'),
    })
    replica.thaw()
    copy.disconnect()
    await Promise.all([end(), hasty.end()])
    await Promise.all([master.stop(), replica.stop()])
  }, 60_000)

  it('answers no call and no read of a store until the replica has its entry', async () => {
    const master = await Engine.start(REDIS)
    const replica = await Engine.start(redisReplica(master.port))
    const { log, end } = await openAt(master.port, { replicas: 1, replicasTimeout: 100 })
    const store = await replicaStore(log, { timeout: 1000 })
    const token = await take(store, 'held')
    expect((await store.read({ key: 'held' })).claims).toMatchObject([{ token }])
    // Like a master that was cut off and replaced: its writes are lost, and its answers are old.
    await replica.freeze()
    const grant = store.grant({ holder: 'h', ttl: 60_000, claims: [{ key: 'other' }] })
    await expect(grant).rejects.toMatchObject({
      code: 'unknown-outcome',
      message: expect.stringContaining('0 of 1 replicas'),
    })
    await expect(store.read({ key: 'held' })).rejects.toMatchObject({
      code: 'timeout',
      message: expect.stringContaining('0 of 1 replicas'),
    })
    replica.thaw()
    expect(await take(store, 'next')).toBeGreaterThan(token)
    await store.close()
    await end()
    await Promise.all([master.stop(), replica.stop()])
  }, 60_000)
})
