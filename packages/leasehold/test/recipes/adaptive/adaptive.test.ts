import { describe, expect, it } from 'vitest'
import type { Leasehold } from '../../../src/index.ts'
import { inNewScene, SCENES } from '../scenes/scene.ts'

describe.each(SCENES)('an adaptive ttl on $name', ({ make }) => {
  const inScene = inNewScene(make)

  const work = async (leasehold: Leasehold, times: number) => {
    for (let i = 0; i < times; i++) {
      await leasehold.withLock('k', { ttl: 'adaptive', kind: 'report' }, async () => {})
    }
  }

  it(
    'is the default at first, then learnt, and known to others and after a restart',
    inScene(async (scene) => {
      const a = await scene.open('a')
      expect(await a.adaptive.explain('report')).toMatchObject({ ttl: 30_000, learnt: false })
      await work(a, 10)
      const learnt = await a.adaptive.explain('report')
      expect(learnt).toMatchObject({ learnt: true, holds: 10 })
      expect(learnt.ttl).toBeLessThan(30_000)
      await a.close()
      const b = await scene.open('b')
      expect(await b.adaptive.explain('report')).toMatchObject({ ttl: learnt.ttl, holds: 10 })
      const lock = await b.lock('k', { ttl: 'adaptive', kind: 'report' })
      const { lease } = await scene.store.read({ lease: lock.lease })
      expect(lease!.ttl).toBe(learnt.ttl)
      await b.close()
    }),
  )

  it(
    'adds up the observations of several processes, one value per kind',
    inScene(async (scene) => {
      const [a, b] = [await scene.open('a'), await scene.open('b')]
      await work(a, 5)
      await work(b, 6)
      await a.close()
      await b.close()
      const c = await scene.open('c')
      expect((await c.adaptive.explain('report')).holds).toBe(11)
      expect((await scene.store.read({ prefix: 'adaptive/' })).keys).toHaveLength(1)
    }),
  )

  it(
    'applies to the permits of a pool, by kind',
    inScene(async (scene) => {
      const a = await scene.open('a')
      const pool = a.pool('gpu', { resources: [{ name: 'gpu-0' }] })
      for (let i = 0; i < 8; i++) {
        await (await pool.take({ tenant: 'x', kind: 'train', ttl: 'adaptive' })).release()
      }
      const { permit } = await pool.tryTake({ tenant: 'x', kind: 'train', ttl: 'adaptive' })
      const { ttl, holds } = await a.adaptive.explain('train')
      expect(holds).toBe(8)
      expect((await scene.store.read({ lease: permit!.lease })).lease!.ttl).toBe(ttl)
    }),
  )

  it(
    'applies to tries too',
    inScene(async (scene) => {
      const a = await scene.open('a')
      for (let i = 0; i < 8; i++) {
        const { lock } = await a.tryLock('k', { ttl: 'adaptive', kind: 'try' })
        await lock!.release()
      }
      expect(await a.adaptive.explain('try')).toMatchObject({ holds: 8 })
    }),
  )

  it(
    'needs a kind',
    inScene(async (scene) => {
      const a = await scene.open('a')
      await expect(a.lock('k', { ttl: 'adaptive' })).rejects.toThrowError(/kind is missing/)
      await expect(a.adaptive.explain('')).rejects.toThrowError(/kind is ""/)
      const pool = a.pool('gpu', { resources: [{ name: 'gpu-0' }] })
      const booked = { tenant: 'x', kind: 'k', ttl: 'adaptive', strategy: 'reservation' } as const
      await expect(pool.take(booked)).rejects.toThrowError(/an adaptive ttl needs/)
    }),
  )
})

describe('an adaptive ttl', () => {
  it('is written at most every ten seconds, without a call', async () => {
    const scene = await SCENES[0]!.make()
    const a = await scene.open('a')
    let writes = 0
    scene.store.watch({ prefix: 'adaptive/' }, (notice) => {
      if (notice.type !== 'events') return
      writes += notice.events.filter(({ type }) => type !== 'held').length
    })
    const work = () => a.withLock('k', { ttl: 'adaptive', kind: 'report' }, async () => {})
    await work()
    await scene.pass(9_000)
    await work()
    expect(writes).toBe(0)
    await scene.pass(2_000)
    expect(writes).toBe(1)
    await scene.pass(60_000)
    expect(writes).toBe(1)
    await work()
    await scene.pass(11_000)
    expect(writes).toBe(2)
    await scene.close()
  })
})
