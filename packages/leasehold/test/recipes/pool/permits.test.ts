import { describe, expect, it } from 'vitest'
import type { Leasehold } from '../../../src/index.ts'
import { inNewScene, SCENES } from '../scenes/scene.ts'
import { gpus, queueReaches } from './clients.ts'

describe.each(SCENES)('permits of a pool on $name', ({ make }) => {
  const inScene = inNewScene(make)

  it(
    'are preempted for a higher priority, after a notice',
    inScene(async (scene) => {
      const [a, b] = [await scene.open('a'), await scene.open('b')]
      const pool = a.pool('gpu', gpus(2, { notice: 300 }))
      const low = await pool.take({ tenant: 'x', preemptible: true })
      const safe = await pool.take({ tenant: 'x' })
      const urgent = b.pool('gpu').take({ tenant: 'y', priority: 5 })
      await scene.until('notice is given', () => low.notice.aborted)
      expect(low.notice.reason).toEqual({ by: 'b', tenant: 'y', priority: 5, period: 300 })
      expect(low.held).toBe(true)
      expect(safe.notice.aborted).toBe(false)
      await scene.until('it is taken', () => low.state === 'lost')
      expect(low.signal.reason).toMatchObject({
        code: 'lost',
        reason: 'revoked',
        by: 'b',
        why: 'preempted for tenant y, priority 5',
      })
      expect((await urgent).resource).toBe(low.resource)
      expect(safe.held).toBe(true)
      await scene.until('no notice is left', async () => {
        return (await scene.store.read({ prefix: 'pool/gpu/notice/' })).keys.length === 0
      })
    }),
  )

  it(
    'stay if the preempting request gives up, or if another permit is returned in time',
    inScene(async (scene) => {
      const [a, b] = [await scene.open('a'), await scene.open('b')]
      const pool = a.pool('gpu', gpus(1, { notice: 300 }))
      const low = await pool.take({ tenant: 'x', preemptible: true })
      const controller = new AbortController()
      const { signal } = controller
      const urgent = b
        .pool('gpu')
        .take({ tenant: 'x', priority: 1, signal })
        .catch(() => {})
      await scene.until('notice is given', () => low.notice.aborted)
      controller.abort()
      await urgent
      await scene.pass(500)
      expect(low.held).toBe(true)
      const other = b.pool('gpu').take({ tenant: 'x', priority: 1 })
      await queueReaches(scene, 1)
      await low.release()
      expect((await other).held).toBe(true)
      expect(low.state).toBe('released')
    }),
  )

  it(
    'end after their ttl, unless they are extended',
    inScene(async (scene) => {
      const [a, b] = [await scene.open('a'), await scene.open('b')]
      const pool = a.pool('gpu', gpus(2))
      const short = await pool.take({ tenant: 'x', ttl: '2s' })
      const longer = await pool.take({ tenant: 'x', ttl: '2s' })
      const waits = [b.pool('gpu').take({ tenant: 'y' }), b.pool('gpu').take({ tenant: 'y' })]
      waits[1]!.catch(() => {})
      await scene.pass(1200)
      await longer.extend()
      expect(longer.remaining()).toBeGreaterThan(1000)
      await scene.pass(1200)
      expect((await waits[0]!).resource).toBe(short.resource)
      expect(short.signal.reason).toMatchObject({ code: 'lost', reason: 'expired' })
      expect(longer.held).toBe(true)
    }),
  )

  it(
    'are shown with the waiters, in order and with forecasts',
    inScene(async (scene) => {
      const [a, b] = [await scene.open('a'), await scene.open('b')]
      const tenants = { x: { weight: 1 }, y: { weight: 3 } }
      const pool = a.pool('gpu', gpus(2, { tenants }))
      await pool.take({ tenant: 'x', kind: 'train', ttl: '1h' })
      await scene.pass(20)
      await b.pool('gpu').take({ tenant: 'x', kind: 'train', ttl: '2h' })
      const waits = [
        pool.take({ tenant: 'x', kind: 'later', ttl: '1h' }),
        b.pool('gpu').take({ tenant: 'y', kind: 'sooner', ttl: '1h' }),
      ]
      for (const wait of waits) wait.catch(() => {})
      await queueReaches(scene, 2)
      const seen: number[] = []
      const stop = pool.watch(({ queue }) => seen.push(queue.length))
      await scene.until('the watch has seen both', () => seen.at(-1) === 2)
      const { resources, queue, tenants: who } = await pool.status()
      expect(resources.map(({ name, free, permits }) => [name, free, permits[0]!.holder])).toEqual([
        ['gpu-0', 0, 'a'],
        ['gpu-1', 0, 'b'],
      ])
      const [first] = resources[0]!.permits
      expect(first!.until! - first!.since).toBeCloseTo(3600_000, -3)
      expect(queue.map(({ kind }) => kind)).toEqual(['sooner', 'later'])
      const hours = queue.map(({ forecast }) => Math.round(forecast!.wait / 360_000) / 10)
      expect(hours).toEqual([1, 2])
      expect(queue[0]!.forecast!.basis).toBe('booked')
      expect(
        who.map(({ tenant, holds, guaranteed, waiting }) => [tenant, holds, guaranteed, waiting]),
      ).toEqual([
        ['x', 2, 0.5, 1],
        ['y', 0, 1.5, 1],
      ])
      stop()
    }),
  )
})

describe('a pool', () => {
  const wrong: [string, (leasehold: Leasehold) => unknown, RegExp][] = [
    ['no resources', (it) => it.pool('gpu', { resources: [] }), /has 0 resources/],
    ['no name', (it) => it.pool('', gpus(1)), /the pool's name is ""/],
    ['a name with a slash', (it) => it.pool('a/b', gpus(1)), /the pool's name is "a\/b"/],
    [
      'two of one name',
      (it) => it.pool('p', { resources: [{ name: 'a' }, { name: 'a' }] }),
      /two resources/,
    ],
    [
      'half a share',
      (it) => it.pool('p', { resources: [{ name: 'a', shares: 0.5 }] }),
      /shares 0.5/,
    ],
    ['weight 0', (it) => it.pool('p', gpus(1, { tenants: { x: { weight: 0 } } })), /weight 0/],
    ['no tenants', (it) => it.pool('p', gpus(1, { tenants: {} })), /0 tenants/],
    ['an endless half-life', (it) => it.pool('p', gpus(1, { halfLife: 'infinite' })), /halfLife/],
    ['no tenant', (it) => it.pool('p', gpus(1)).take({} as never), /tenant is undefined/],
    [
      'a foreign tenant',
      (it) => it.pool('p', gpus(1, { tenants: { x: {} } })).take({ tenant: 'y' }),
      /tenant "y" is not a tenant of pool "p"\. Its tenants are "x"/,
    ],
    [
      'too many',
      (it) => it.pool('p', gpus(1)).take({ tenant: 'x', count: 2 }),
      /has 1 of 1 resources in all, but 2/,
    ],
    [
      'what there is not',
      (it) => it.pool('p', gpus(1)).take({ tenant: 'x', where: 'memory >= 40' }),
      /with memory >= 40, but 1/,
    ],
    [
      'more shares than there are',
      (it) =>
        it
          .pool('p', { resources: [{ name: 'a', shares: 4, memory: 80 }] })
          .take({ tenant: 'x', shares: 5, where: 'memory >= 40' }),
      /with memory >= 40, at least 5 shares, but 1/,
    ],
    [
      'a strange condition',
      (it) => it.pool('p', gpus(1)).take({ tenant: 'x', where: 'memory around 40' }),
      /where has "memory around 40"/,
    ],
    [
      'a strange demand',
      (it) => it.pool('p', gpus(1)).take({ tenant: 'x', where: { memory: { least: 4 } as never } }),
      /where.memory has "least"/,
    ],
    [
      'a strategy of others',
      (it) => it.pool('p', gpus(1)).take({ tenant: 'x', strategy: 'session' as never }),
      /strategy is "session"/,
    ],
  ]

  it.each(wrong)('refuses %s with a clear word', async (_, act, message) => {
    const scene = await SCENES[0]!.make()
    const leasehold = await scene.open('a')
    const error = await (async () => act(leasehold))().catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({
      code: 'invalid-argument',
      message: expect.stringMatching(message),
    })
    await scene.close()
  })
})
