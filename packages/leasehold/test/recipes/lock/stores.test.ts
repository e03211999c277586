import { describe, expect, it } from 'vitest'
import { isLeaseholdError } from '../../../src/index.ts'
import { inNewScene, SCENES } from '../scenes/scene.ts'

describe.each(SCENES)('locks on $name', ({ make }) => {
  const inScene = inNewScene(make)

  it(
    'are taken together or not at all, whatever the order of their keys',
    inScene(async (scene) => {
      const [a, b] = [await scene.open('a'), await scene.open('b')]
      const both = await a.lock(['x', 'y'])
      const other = b.lock(['y', 'x'])
      const { conflict } = await b.tryLock(['z', 'y'])
      expect(conflict?.holder).toBe('a')
      expect((await b.tryLock('z')).lock?.held).toBe(true)
      await both.release()
      const next = await other
      expect(next.keys).toEqual(['y', 'x'])
      expect(next.token).toBeGreaterThan(both.claimToken)
    }),
  )

  it(
    'cannot deadlock: all requests for the same two keys, in any order, succeed',
    inScene(async (scene) => {
      const clients = await Promise.all(['a', 'b', 'c', 'd'].map((name) => scene.open(name)))
      const inside = new Set<string>()
      const done = clients.flatMap((client, i) =>
        [0, 1, 2].map(async (round) => {
          const keys = (i + round) % 2 === 0 ? ['x', 'y'] : ['y', 'x']
          await client.withLock(keys, async () => {
            expect(inside.size).toBe(0)
            inside.add(`${i}/${round}`)
            await scene.store.read({ key: 'x' })
            inside.clear()
          })
          return true
        }),
      )
      await scene.pass(50)
      expect(await Promise.all(done)).toHaveLength(12)
    }),
  )

  it(
    'pass in order to fifty waiters, which send nothing while they wait',
    inScene(async (scene) => {
      const holder = await scene.open('holder')
      const waiters = await scene.open('waiters')
      const held = await holder.lock('k')
      const order: number[] = []
      const waits: Promise<void>[] = []
      for (let i = 0; i < 50; i++) {
        waits.push(waiters.withLock('k', async () => void order.push(i)))
      }
      const inQueue = async () => (await scene.store.read({ key: 'k' })).count === 51
      await scene.until('50 are in the queue', inQueue)
      await held.release()
      await scene.pass(50)
      await Promise.all(waits)
      expect(order).toEqual(Array.from({ length: 50 }, (_, i) => i))
    }),
  )

  it(
    'can be taken within a lock that is held, and leave that one held',
    inScene(async (scene) => {
      const a = await scene.open('a')
      const outer = await a.lock(['k', 'l'])
      const nested = await a.withLock('k', { within: outer }, (lock) => lock.token)
      expect(nested).toBe(outer.token)
      expect(outer.held).toBe(true)
      const inner = await a.lock('k', { within: outer })
      await inner.release()
      expect(() => inner.token).toThrowError(expect.objectContaining({ code: 'claim-not-found' }))
      await expect(a.lock('m', { within: outer })).rejects.toThrowError(/"m" is not part of/)
      await outer.release()
      await expect(a.lock('k', { within: outer })).rejects.toThrowError(/was released/)
    }),
  )

  it(
    'change the value that others read, in order',
    inScene(async (scene) => {
      const [a, b] = [await scene.open('a'), await scene.open('b')]
      const held = await a.lock('k', { value: 'one' })
      const updates = ['two', 'three', 'four'].map((value) => held.update(value))
      await Promise.all(updates)
      expect((await b.tryLock('k')).conflict?.value).toBe('four')
      await held.release()
      await expect(held.update('five')).rejects.toThrowError(/was released/)
    }),
  )

  it(
    'are reclaimed after a loss if nobody held them meanwhile',
    inScene(async (scene) => {
      const a = await scene.open('a')
      const lost = await a.lock('k')
      await scene.store.revoke({ target: { lease: lost.lease }, by: 'admin', why: 'test' })
      await scene.until('it is lost', () => lost.state === 'lost')
      const again = await a.reclaim(lost)
      expect(again.lock?.token).toBeGreaterThan(lost.claimToken)
      await expect(a.reclaim(again.lock!)).rejects.toThrowError(/only a lock whose state is lost/)
    }),
  )

  it(
    'are not reclaimed if somebody holds or held them',
    inScene(async (scene) => {
      const [a, b] = [await scene.open('a'), await scene.open('b')]
      const lost = await a.lock('k')
      await scene.store.revoke({ target: { lease: lost.lease } })
      await scene.until('it is lost', () => lost.state === 'lost')
      const other = await b.lock('k')
      expect((await a.reclaim(lost)).conflict?.holder).toBe('b')
      await other.release()
      const error = await a.reclaim(lost).catch((thrown: unknown) => thrown)
      expect(isLeaseholdError(error, 'lost') && error.reason).toBe('superseded')
      expect(isLeaseholdError(error) && error.by).toBe('b')
      expect((await b.tryLock('k')).lock?.held).toBe(true)
    }),
  )
})
