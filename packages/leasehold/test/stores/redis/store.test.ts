import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Granted, LeaseStore, Notice } from '../../../src/port/index.ts'
import {
  type NodeRedisClient,
  type RedisClient,
  redisStore,
} from '../../../src/stores/redis/index.ts'
import { describeWith, Engine, REDIS, redisReplica } from '../../engines/index.ts'
import { TcpProxy } from '../../faults/index.ts'

const HOST = '127.0.0.1'

function nodeRedis(port: number) {
  return createClient({ socket: { port, host: HOST } }).on('error', () => {})
}

async function hold(store: LeaseStore, key: string, ttl = 60_000): Promise<Granted> {
  return (await store.grant({ holder: 'alice', ttl, claims: [{ key }] })) as Granted
}

/** Collects notices until one is of this type. */
function heard(store: LeaseStore, target: Parameters<LeaseStore['watch']>[0]) {
  const notices: Notice[] = []
  let wake = () => {}
  const watch = store.watch(target, (notice) => {
    notices.push(notice)
    wake()
  })
  const until = async (type: Notice['type']) => {
    while (!notices.some((notice) => notice.type === type)) {
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
    return notices.find((notice) => notice.type === type)!
  }
  return { notices, until, close: () => watch.close() }
}

// long because all share one server.
describeWith(REDIS, 'the Redis store', () => {
  let engine: Engine
  let redis: Redis
  let node: ReturnType<typeof nodeRedis>
  let namespaces = 0
  const opened: LeaseStore[] = []

  const open = async (client: RedisClient = redis, options: object = {}) => {
    const namespace = `n${++namespaces}`
    const store = await redisStore(client, { namespace, ...options })
    opened.push(store)
    return { store, namespace }
  }

  beforeAll(async () => {
    engine = await Engine.start(REDIS)
    redis = new Redis({ port: engine.port, host: HOST, db: 1 }).on('error', () => {})
    node = nodeRedis(engine.port)
    await node.connect()
  })

  afterAll(async () => {
    await Promise.all(opened.map((store) => store.close()))
    redis?.disconnect()
    node?.destroy()
    await engine?.stop()
  })

  it('carries out the calls of one turn in few runs, and answers each separately', async () => {
    const { store } = await open()
    const { lease } = await hold(store, 'held')
    const runs = async () =>
      Number(/cmdstat_evalsha:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1] ?? 0)
    const before = await runs()
    const keys = Array.from({ length: 64 }, (_, at) => `key-${at}`)
    const claims = keys.map((key) => store.claim({ lease, claims: [{ key }] }))
    const wrong = store.release({ lease, keys: ['held'], token: 7 })
    await expect(wrong).rejects.toMatchObject({ code: 'claim-not-found' })
    const answers = await Promise.all(claims)
    expect(answers.every((answer) => answer.outcome === 'claimed' && answer.holds)).toBe(true)
    expect((await runs()) - before).toBeLessThanOrEqual(3)
  })

  it('works after Redis has lost its scripts', async () => {
    const { store } = await open()
    const { lease, token } = await hold(store, 'key')
    await redis.script('FLUSH')
    await store.release({ lease, keys: ['key'], token })
    expect((await store.read({ key: 'key' })).count).toBe(0)
  })

  it('continues with higher tokens, and reports it, when all its data are gone', async () => {
    const { store, namespace } = await open()
    const { token, lease } = await hold(store, 'key')
    const own = heard(store, { lease })
    const all = heard(store, { prefix: '' })
    await Promise.all([own.until('standing'), all.until('watching')])
    const keys = await redis.keys(`{${namespace}}:*`)
    await redis.del(...keys)
    const next = await hold(store, 'key')
    expect(next.holds).toBe(true)
    expect(next.token).toBeGreaterThan(token)
    expect(await own.until('interrupted')).toMatchObject({ error: { code: 'unknown-outcome' } })
    await all.until('interrupted')
  })

  it('gives every lease its full ttl again after a restart, and makes watches read again', async () => {
    const own = await Engine.start(REDIS)
    const client = new Redis({ port: own.port, host: HOST, retryStrategy: () => 20 })
    client.on('error', () => {})
    const store = await redisStore(client)
    const { lease, revision } = await hold(store, 'key', 20_000)
    const limited = { holder: 'bob', ttl: 60_000, maxLife: 60_000 }
    const short = (await store.grant(limited)) as Granted
    const before = (await store.read({ lease: short.lease })).lease!
    await new Promise((resolve) => setTimeout(resolve, 1200))
    await own.kill()
    await own.restart()
    const { until, renewedAt } = (await store.read({ lease })).lease!
    const now = (await store.read({ lease: (await hold(store, 'clock')).lease })).lease!.grantedAt
    expect(until - renewedAt).toBeCloseTo(20_000, 0)
    // More than was left of it before the restart.
    expect(until - now).toBeGreaterThan(20_000 - 1200)
    const { endOfLife } = (await store.read({ lease: short.lease })).lease!
    expect(endOfLife - before.endOfLife).toBeGreaterThanOrEqual(1100)
    const watch = heard(store, { prefix: '', from: revision })
    expect(await watch.until('compacted')).toMatchObject({ oldest: expect.any(Number) })
    await store.close()
    client.disconnect()
    await own.stop()
  })

  it('does not stop when the clock of its machine is set back', async () => {
    const { store, namespace } = await open()
    const { lease } = await hold(store, 'key', 300)
    // As if the last run was an hour in the future.
    const later = `local meta = cmsgpack.unpack(redis.call('GET', KEYS[1]))
      meta[5], meta[6] = meta[5] + 3600000, meta[6] + 3600000
      redis.call('SET', KEYS[1], cmsgpack.pack(meta))
      return string.format('%.3f', meta[5])`
    const last = await redis.eval(later, 1, `{${namespace}}:meta`)
    await store.renew([lease])
    const { renewedAt } = (await store.read({ lease })).lease!
    expect(renewedAt).toBeGreaterThanOrEqual(Math.floor(Number(last)))
    const own = heard(store, { lease })
    expect(await own.until('gone')).toMatchObject({ end: { reason: 'expired' } })
  })

  it('does not carry out a run twice if a client library repeats it', async () => {
    const line = await TcpProxy.to(engine.port)
    // ioredis sends again what was not answered when its connection broke.
    const client = new Redis({ port: line.port, host: HOST, retryStrategy: () => 20 })
    client.on('error', () => {})
    const { store } = await open(client)
    const { lease } = await hold(store, 'other')
    line.loseReplies()
    const claim = store.claim({ lease, claims: [{ key: 'key' }] })
    claim.catch(() => {})
    while (line.repliesLost === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    line.heal()
    await expect(claim).rejects.toMatchObject({ code: 'unknown-outcome' })
    expect((await store.read({ key: 'key' })).count).toBe(1)
    await store.close()
    client.disconnect()
    await line.close()
  })

  it('notifies a waiter that it holds, even if the message is lost', async () => {
    const line = await TcpProxy.to(engine.port)
    // Calls go directly; only messages go through the proxy.
    const divided: NodeRedisClient = {
      eval: (script, options) => node.eval(script, options),
      evalSha: (digest, options) => node.evalSha(digest, options),
      duplicate: () => nodeRedis(line.port),
    }
    const { store } = await open(divided)
    const first = await hold(store, 'key')
    const second = await hold(store, 'key')
    const own = heard(store, { lease: second.lease })
    await own.until('standing')
    line.cut('to-client')
    await store.release({ lease: first.lease, keys: ['key'], token: first.token })
    expect(await own.until('holds')).toMatchObject({ token: second.token })
    line.heal()
    await store.close()
    await line.close()
  }, 20_000)

  it('reports all events of a prefix in order, even if a message is lost', async () => {
    let lost = 0
    const divided: NodeRedisClient = {
      eval: (script, options) => node.eval(script, options),
      evalSha: (digest, options) => node.evalSha(digest, options),
      duplicate: () => {
        const second = nodeRedis(engine.port)
        const subscribe = second.subscribe.bind(second)
        return Object.assign(second, {
          subscribe: (channel: string, listener: (message: string, channel: string) => void) =>
            subscribe(channel, (message) => {
              if (channel.endsWith(':news') && lost++ === 0) return
              listener(message, channel)
            }),
        })
      },
    }
    const { store } = await open(divided)
    const all = heard(store, { prefix: '' })
    await all.until('watching')
    await hold(store, 'a')
    while (lost === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    await hold(store, 'b')
    await all.until('events')
    const events = all.notices.flatMap((each) => (each.type === 'events' ? each.events : []))
    expect(events.map(({ type, key }) => `${type} ${key}`)).toEqual([
      ...['claimed a', 'held a', 'claimed b', 'held b'],
    ])
    await store.close()
  })

  it('does not promote a claim whose own lease is due', async () => {
    const { store } = await open()
    const first = await hold(store, 'key')
    await hold(store, 'key', 50)
    const third = await hold(store, 'key')
    // Without watches nothing checks the deadlines, and both calls are carried out in one run.
    await new Promise((resolve) => setTimeout(resolve, 100))
    const [, reading] = await Promise.all([
      store.release({ lease: first.lease, keys: ['key'], token: first.token }),
      store.read({ key: 'key' }),
    ])
    expect(reading.claims.map(({ token }) => token)).toEqual([third.token])
  })

  it('keeps a limited number of idle keys, and all claimed ones', async () => {
    const { store, namespace } = await open(redis, { limits: { idleKeys: 100 } })
    const { lease } = await hold(store, 'jobs/1500')
    for (let first = 0; first < 3000; first += 250) {
      const keys = Array.from({ length: 250 }, (_, at) => `jobs/${first + at}`)
      const { token } = (await store.claim({ lease, claims: keys.map((key) => ({ key })) })) as {
        token: number
      }
      await store.release({ lease, keys, token })
    }
    expect(await redis.hlen(`{${namespace}}:lines`)).toBeLessThanOrEqual(101)
    expect(await redis.zcard(`{${namespace}}:names`)).toBeLessThanOrEqual(101)
    const { keys, more } = await store.read({ prefix: 'jobs/', limit: 1 })
    expect([keys.map(({ key }) => key), more]).toEqual([['jobs/1500'], false])
  })

  it('keeps at least the promised number of requests and ends, and at most twice as many', async () => {
    const limits = { requests: 50, ended: 50 }
    const { store, namespace } = await open(redis, { limits })
    for (let at = 0; at < 240; at++) {
      const request = `request-${at}`
      const { lease } = (await store.grant({ holder: 'a', ttl: 1000, request })) as Granted
      await store.revoke({ target: { lease } })
    }
    for (const name of ['requests', 'ended']) {
      const sizes = [0, 1].map((age) => redis.hlen(`{${namespace}}:${name}${age}`))
      const [old, young] = await Promise.all(sizes)
      expect(old! + young!).toBeGreaterThanOrEqual(50)
      expect(old! + young!).toBeLessThanOrEqual(102)
    }
  })

  it('deletes all keys of ended leases', async () => {
    const { store, namespace } = await open(redis, { limits: { idleKeys: 0 } })
    const parent = await hold(store, 'a')
    await store.grant({ holder: 'b', ttl: 1000, parent: parent.lease, claims: [{ key: 'a' }] })
    await store.claim({ lease: parent.lease, claims: [{ key: 'b' }, { key: 'c' }] })
    await store.revoke({ target: { lease: parent.lease } })
    const names = (await redis.keys(`{${namespace}}:*`)).map((key) =>
      key.split(':').slice(1).join(':'),
    )
    expect(names.sort()).toEqual(['ended1', 'log', 'meta', 'requests1'])
  })

  it('deletes a key that was claimed and released in one turn', async () => {
    const { store, namespace } = await open(redis, { limits: { idleKeys: 0 } })
    const { lease } = await hold(store, 'other')
    await Promise.all([
      store.claim({ lease, claims: [{ key: 'key' }] }),
      store.revoke({ target: { key: 'key' } }),
    ])
    expect(await redis.zrange(`{${namespace}}:names`, 0, -1)).toEqual(['other'])
  })

  describe('if Redis has no memory left', () => {
    it('refuses calls that need memory, and allows releases', async () => {
      const own = await Engine.start(REDIS)
      const client = new Redis({ port: own.port, host: HOST })
      const store = await redisStore(client)
      const { lease, token } = await hold(store, 'key')
      await client.config('SET', 'maxmemory', '1')
      const calls = [
        store.claim({ lease, claims: [{ key: 'other' }] }),
        store.renew([lease]),
        store.release({ lease, keys: ['key'], token }),
        store.read({ key: 'key' }),
      ] as const
      await expect(calls[0]).rejects.toMatchObject({ code: 'storage-full', outcome: 'refused' })
      expect(await calls[1]).toEqual({ lost: [], capped: [] })
      await calls[2]
      expect(await calls[3]).toMatchObject({ count: 0 })
      await store.close()
      client.disconnect()
      await own.stop()
    })

    it('refuses a Redis that may evict leases', async () => {
      const own = await Engine.start(REDIS)
      const client = new Redis({ port: own.port, host: HOST })
      await client.config('SET', 'maxmemory-policy', 'allkeys-lru')
      const failed = redisStore(client)
      await expect(failed).rejects.toMatchObject({ code: 'unsupported' })
      await expect(failed).rejects.toThrow(/allkeys-lru.*noeviction/)
      await client.config('SET', 'maxmemory-policy', 'volatile-ttl')
      await (await redisStore(client)).close()
      client.disconnect()
      await own.stop()
    })
  })

  it('reports an unknown outcome if the replicas do not answer', async () => {
    const master = await Engine.start(REDIS)
    const replica = await Engine.start(redisReplica(master.port))
    for (const client of [new Redis({ port: master.port, host: HOST }), nodeRedis(master.port)]) {
      if ('connect' in client && 'isOpen' in client) await client.connect()
      const { store } = await open(client as RedisClient, { replicas: 1, replicasTimeout: 2000 })
      const granted = await hold(store, 'key')
      expect(granted.holds).toBe(true)
      replica.signal('SIGSTOP')
      const { store: hasty } = await open(client as RedisClient, {
        replicas: 1,
        replicasTimeout: 50,
      }).catch((error) => ({ store: error }))
      expect(hasty).toMatchObject({ code: 'unknown-outcome', message: /0 of 1 replicas/ })
      replica.signal('SIGCONT')
      await store.close()
      if ('isOpen' in client) client.destroy()
      else client.disconnect()
    }
    await replica.stop()
    await master.stop()
  })

  it('refuses invalid options and clients, and names them', async () => {
    const wrong = (client: unknown, options: object) => redisStore(client as RedisClient, options)
    await expect(wrong(undefined, {})).rejects.toThrow(/client is undefined: give a client/)
    await expect(wrong(redis, { namespace: 'a b' })).rejects.toThrow(/namespace is "a b"/)
    await expect(wrong(redis, { namespace: '{a}' })).rejects.toThrow(/namespace is "\{a\}"/)
    await expect(wrong(redis, { replicas: -1 })).rejects.toThrow(/replicas is -1/)
    await expect(wrong(redis, { timeout: 0 })).rejects.toThrow(/timeout is 0/)
    await expect(wrong(redis, { replicasTimeout: 0 })).rejects.toThrow(/replicasTimeout is 0/)
    await expect(wrong(redis, { within: 0 })).rejects.toThrow(/replicasTimeout is 0/)
    const cluster = Object.assign(Object.create(redis), { isCluster: true })
    await expect(wrong(cluster, { replicas: 1 })).rejects.toMatchObject({ code: 'unsupported' })
  })

  it('fails if there is no Redis', async () => {
    const nowhere = new Redis({ port: 1, host: HOST, maxRetriesPerRequest: null })
    nowhere.on('error', () => {})
    const failed = redisStore(nowhere, { timeout: 200 })
    await expect(failed).rejects.toMatchObject({ code: 'timeout' })
    await expect(failed).rejects.toThrow(/within 200ms: is it running/)
    nowhere.disconnect()
  })

  it('does not change data of another format', async () => {
    await redis.set('{future}:meta', '2 something else')
    const failed = redisStore(redis, { namespace: 'future' })
    await expect(failed).rejects.toMatchObject({ code: 'unsupported' })
    expect(await redis.get('{future}:meta')).toBe('2 something else')
  })
})
