import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Claimed, Granted, LeaseStore, Notice } from '../../../src/port/index.ts'
import {
  type NodeRedisClient,
  type RedisClient,
  redisStore,
} from '../../../src/stores/redis/index.ts'
import { WatchRecorder } from '../../../src/testing/conformance/watches/watch-recorder.ts'
import { describeWith, Engine, REDIS } from '../../engines/index.ts'
import { TcpProxy } from '../../faults/index.ts'

const HOST = '127.0.0.1'
/** Before the store reads everything again. */
const SOON_MS = 2000

function node(port: number) {
  return createClient({ socket: { port, host: HOST } }).on('error', () => {})
}

async function grant(store: LeaseStore, key?: string): Promise<Granted> {
  const claims = key === undefined ? undefined : [{ key }]
  return (await store.grant({ holder: 'alice', ttl: 60_000, claims })) as Granted
}

describeWith(REDIS, 'watching Redis again', () => {
  let engine: Engine
  let io: Redis
  let other: ReturnType<typeof node>
  let namespaces = 0

  beforeAll(async () => {
    engine = await Engine.start(REDIS)
    io = new Redis({ port: engine.port, host: HOST })
    other = node(engine.port)
    await other.connect()
  })

  afterAll(async () => {
    io?.disconnect()
    other?.destroy()
    await engine?.stop()
  })

  const open = async (client: RedisClient, options: object = {}) => {
    const namespace = `n${++namespaces}`
    return { namespace, store: await redisStore(client, { namespace, ...options }) }
  }
  /** The channels that a store has subscribed to, without its prefix. */
  const channels = async (lease: string) =>
    ((await io.call('PUBSUB', 'CHANNELS', `*:${lease}`)) as string[]).length

  describe.each([
    ['ioredis', () => io],
    ['node-redis', () => other],
  ] as [string, () => RedisClient][])('through %s', (_, client) => {
    it('receives changes of a lease whose earlier watch was just closed', async () => {
      const { store } = await open(client())
      const { lease } = await grant(store)
      const first = new WatchRecorder(store, { lease })
      await first.next('standing')
      first.close()
      const second = new WatchRecorder(store, { lease }, SOON_MS)
      await second.next('standing')
      await store.revoke({ target: { lease } })
      await second.next('gone')
      await store.close()
    })

    it('is notified once, even if it was watched several times in one turn', async () => {
      const { store } = await open(client())
      const { lease } = await grant(store)
      for (let times = 0; times < 3; times++) new WatchRecorder(store, { lease }).close()
      const recorder = new WatchRecorder(store, { lease }, SOON_MS)
      await recorder.next('standing')
      const { token } = (await store.claim({ lease, claims: [{ key: 'a' }] })) as Claimed
      await store.revoke({ target: { key: 'a', token } })
      await recorder.next('removed')
      await store.revoke({ target: { lease } })
      await recorder.next('gone')
      await store.close()
    })

    it('leaves no subscriptions without watches', async () => {
      const { store } = await open(client())
      const [{ lease }, other] = [await grant(store), await grant(store)]
      const all = new WatchRecorder(store, { prefix: '' })
      new WatchRecorder(store, { lease }).close()
      await all.next('watching')
      // A later subscription comes after it, on the same connection.
      await new WatchRecorder(store, { lease: other.lease }).next('standing')
      await expect.poll(() => channels(lease)).toBe(0)
      await store.close()
    })

    it('receives changes after Redis lost its data', async () => {
      const { store, namespace } = await open(client())
      await grant(store, 'before')
      const again = new Promise<WatchRecorder>((resolve) => {
        const watch = (notice: Notice) => {
          if (notice.type === 'interrupted')
            resolve(new WatchRecorder(store, { prefix: '' }, SOON_MS))
        }
        store.watch({ prefix: '' }, watch)
      })
      const first = new WatchRecorder(store, { prefix: '' })
      await first.next('watching')
      await io.del(...(await io.keys(`{${namespace}}:*`)))
      await grant(store)
      const recorder = await again
      await recorder.next('watching')
      await grant(store, 'after')
      await recorder.next('events')
      await store.close()
    })
  })

  it('is not interrupted by a break of the earlier connection', async () => {
    const line = await TcpProxy.to(engine.port)
    const divided: NodeRedisClient = {
      eval: (script, options) => other.eval(script, options),
      evalSha: (digest, options) => other.evalSha(digest, options),
      duplicate: () => node(line.port),
    }
    const { store } = await open(divided, { timeout: 1500 })
    const first = new WatchRecorder(store, { prefix: '' })
    await first.next('watching')
    line.reset()
    await sleep(100)
    first.close()
    // Without watches, the connection is closed after a while.
    await sleep(700)
    line.heal()
    const second = new WatchRecorder(store, { prefix: '' })
    await second.next('watching')
    await sleep(1200)
    await grant(store, 'a')
    await second.next('events')
    await store.close()
    await line.close()
  })
  it('sends its first notice only when it would receive later changes', async () => {
    let subscribe = () => {}
    const until = new Promise<void>((resolve) => {
      subscribe = resolve
    })
    const slow: NodeRedisClient = {
      eval: (script, options) => other.eval(script, options),
      evalSha: (digest, options) => other.evalSha(digest, options),
      duplicate: () => {
        const second = node(engine.port)
        const joined = second.subscribe.bind(second)
        const late: typeof joined = async (channel, listener) => {
          if (!/:(news|due)$/.test(String(channel))) await until
          return joined(channel, listener)
        }
        return Object.assign(second, { subscribe: late })
      },
    }
    const { store } = await open(slow, { timeout: 20_000 })
    const [first, second] = [await grant(store, 'a'), await grant(store)]
    const all = new WatchRecorder(store, { prefix: '' })
    await all.next('watching')
    const recorder = new WatchRecorder(store, { lease: second.lease })
    const { lease } = second
    const { token } = (await store.claim({ lease, claims: [{ key: 'a' }] })) as Claimed
    // Meanwhile everything is read again.
    await sleep(5500)
    await store.revoke({ target: { key: 'a', token } })
    subscribe()
    expect((await recorder.next('standing')).claims).toEqual([])
    await store.revoke({ target: { lease: first.lease } })
    await store.close()
  })
  it('is notified once that a claim holds, even before the answer to the claim', async () => {
    let answers = Promise.resolve()
    const slow: NodeRedisClient = {
      eval: (script, options) => other.eval(script, options),
      evalSha: async (digest, options) => {
        const [answer] = await Promise.all([other.evalSha(digest, options), answers])
        return answer
      },
      duplicate: () => node(engine.port),
    }
    const { store, namespace } = await open(slow)
    const next = await redisStore(other, { namespace })
    const first = await grant(next, 'a')
    const { lease } = await grant(store)
    const recorder = new WatchRecorder(store, { lease })
    await recorder.next('standing')
    let answer = () => {}
    answers = new Promise((resolve) => {
      answer = resolve
    })
    const claim = store.claim({ lease, claims: [{ key: 'a' }] })
    await expect.poll(async () => (await next.read({ key: 'a' })).count).toBe(2)
    await next.release({ lease: first.lease, keys: ['a'], token: first.token })
    await recorder.next('holds')
    answer()
    expect(await claim).toMatchObject({ holds: false })
    // Meanwhile everything is read again.
    await sleep(5500)
    expect(recorder.notices.filter(({ type }) => type === 'holds').length).toBe(1)
    await Promise.all([store.close(), next.close()])
  }, 10_000)
})
