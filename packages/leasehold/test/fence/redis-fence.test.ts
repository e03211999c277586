import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisFence, redisFence } from '../../src/fence/index.ts'
import { describeWith, Engine, REDIS } from '../engines/index.ts'
import { runNode } from '../structure/commands.ts'
import { ROOT } from '../structure/source-files.ts'
import { itIsAFence, newResource, remembersAcrossCrashes } from './fence-cases.ts'

function nodeRedis(port: number) {
  return createClient({
    socket: { host: '127.0.0.1', port, reconnectStrategy: 20 },
    disableOfflineQueue: false,
  }).on('error', () => {})
}

function ioRedis(port: number): Redis {
  const retryStrategy = () => 20
  return new Redis({ host: '127.0.0.1', port, retryStrategy }).on('error', () => {})
}

describeWith(REDIS, 'a fence in Redis', () => {
  let engine: Engine
  let io: Redis
  let node: ReturnType<typeof nodeRedis>
  let turn = 0
  /** A client of each library in turn: they must agree. */
  const open = (): RedisFence => redisFence(turn++ % 2 === 0 ? io : node)

  beforeAll(async () => {
    engine = await Engine.start(REDIS)
    io = ioRedis(engine.port)
    node = nodeRedis(engine.port)
    await node.connect()
  })

  afterAll(async () => {
    io?.disconnect()
    node?.destroy()
    await engine?.stop()
  })

  itIsAFence(open)

  describe.each([
    ['ioredis', () => redisFence(io)],
    ['node-redis', () => redisFence(node)],
  ])('with %s', (_name, fenceOf) => {
    it('checks and sets in one step', async () => {
      const fence = fenceOf()
      const resource = newResource()
      const key = `${resource}/body`
      await fence.set(resource, 9, key, 'by nine')
      await fence.set(resource, 10, key, 'by ten')
      await expect(fence.set(resource, 9, key, 'late')).rejects.toMatchObject({
        code: 'stale-token',
        token: 9,
        highest: 10,
      })
      expect(await io.get(key)).toBe('by ten')
      await fence.set(resource, 10, key, 'by ten again')
      expect(await io.get(key)).toBe('by ten again')
    })

    it('works after Redis has lost its scripts', async () => {
      const resource = newResource()
      await fenceOf().admit(resource, 5)
      await io.script('FLUSH')
      await expect(fenceOf().admit(resource, 4)).rejects.toMatchObject({ highest: 5 })
      await fenceOf().admit(resource, 6)
    })

    it('does not treat an impossible answer as a refusal', async () => {
      const resource = newResource()
      await io.set(`leasehold:fence:${resource}`, 'nonsense')
      const failed = fenceOf().admit(resource, 5)
      await expect(failed).rejects.toMatchObject({ code: 'unknown-outcome', outcome: 'unknown' })
      await expect(failed).rejects.toThrow('does not hold a token')
    })
  })

  it('keeps the key forever, and every digit of the token', async () => {
    const resource = newResource()
    await redisFence(io, { prefix: 'f:' }).admit(resource, Number.MAX_SAFE_INTEGER)
    expect(await io.get(`f:${resource}`)).toBe('9007199254740991')
    expect(await io.ttl(`f:${resource}`)).toBe(-1)
  })

  it('refuses an invalid key, value or prefix', async () => {
    const fence = redisFence(io)
    const set = fence.set('a', 1, 'key', 5 as unknown as string)
    await expect(set).rejects.toMatchObject({ code: 'invalid-argument' })
    expect(() => redisFence(io, { prefix: 5 as unknown as string })).toThrow('prefix is 5')
  })

  it('remembers every admitted token when Redis is killed repeatedly under load', async () => {
    await remembersAcrossCrashes({
      fences: [redisFence(io), redisFence(node)],
      lives: 3,
      crash: () => engine.kill(),
      restart: () => engine.restart(),
    })
  }, 240_000)

  it('works as the example shows', async () => {
    const url = `redis://127.0.0.1:${engine.port}`
    const ran = await runNode(['examples/dist/engines/fenced-redis.js', url], ROOT)
    expect(ran).toEqual({
      code: 0,
      stderr: '',
      stdout:
        'the newer holder writes with token 10\n' +
        'the late one is refused: stale-token, it has seen 10\n' +
        'the report reads: written by ten\n',
    })
  })
})
