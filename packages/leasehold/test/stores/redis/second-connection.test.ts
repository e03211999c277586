import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Clock, type Granted, systemClock } from '../../../src/port/index.ts'
import { type RedisClient, redisStore } from '../../../src/stores/redis/index.ts'
import { WatchRecorder } from '../../../src/testing/conformance/watches/watch-recorder.ts'
import { describeWith, Engine, REDIS } from '../../engines/index.ts'
import { TcpProxy } from '../../faults/index.ts'

const HOST = '127.0.0.1'

function node(port: number) {
  return createClient({ socket: { port, host: HOST } }).on('error', () => {})
}

/** A clock that can run timers early. */
class HastyClock implements Clock {
  readonly #waiting = new Set<() => void>()

  now = () => systemClock.now()
  asleep = () => systemClock.asleep()
  defer = (run: () => void) => systemClock.defer(run)

  timer(time: number, run: () => void, keepAlive?: boolean) {
    const once = () => {
      if (this.#waiting.delete(once)) run()
    }
    this.#waiting.add(once)
    const timer = systemClock.timer(time, once, keepAlive)
    return {
      cancel: () => {
        this.#waiting.delete(once)
        timer.cancel()
      },
    }
  }

  runAll(): void {
    for (const run of [...this.#waiting]) run()
  }
}

describeWith(REDIS, 'the second connection to Redis', () => {
  let engine: Engine
  let io: Redis
  let other: ReturnType<typeof node>

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

  const clients: [name: string, client: () => RedisClient][] = [
    ['ioredis', () => io],
    ['node-redis', () => other],
  ]

  it.each(clients)(
    'is closed without watches, and the next watch is not interrupted by that (%s)',
    async (name, client) => {
      const clock = new HastyClock()
      const store = await redisStore(client(), { namespace: name, clock })
      const { lease } = (await store.grant({ holder: 'alice', ttl: 60_000 })) as Granted
      const first = new WatchRecorder(store, { lease })
      await first.next('standing')
      first.close()
      clock.runAll()
      const second = new WatchRecorder(store, { lease })
      await second.next('standing')
      await sleep(200)
      await store.revoke({ target: { lease } })
      await second.next('gone')
      await store.close()
    },
  )

  it('is abandoned if the store is closed before it is open', async () => {
    const line = await TcpProxy.to(engine.port)
    const client = node(line.port)
    await client.connect()
    const store = await redisStore(client, { namespace: 'closed' })
    const { lease } = (await store.grant({ holder: 'alice', ttl: 60_000 })) as Granted
    line.cut()
    const recorder = new WatchRecorder(store, { lease })
    await expect.poll(() => line.connections).toBe(2)
    await store.close()
    await recorder.next('interrupted')
    line.heal()
    await expect.poll(() => line.connections).toBe(1)
    client.destroy()
    await line.close()
  })
  it('is awaited, even if a client of ioredis does not queue calls until it is connected', async () => {
    const client = new Redis({ port: engine.port, host: HOST, enableOfflineQueue: false })
    await once(client, 'ready')
    const store = await redisStore(client, { namespace: 'offline' })
    const { lease } = (await store.grant({ holder: 'alice', ttl: 60_000 })) as Granted
    const recorder = new WatchRecorder(store, { lease })
    await recorder.next('standing')
    await store.revoke({ target: { lease } })
    await recorder.next('gone')
    await store.close()
    client.disconnect()
  })
})
