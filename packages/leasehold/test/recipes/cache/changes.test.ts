import { describe, expect, it } from 'vitest'
import { Leasehold } from '../../../src/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { FaultyStore } from '../../client/faulty-store.ts'
import { slowLoader } from './slow-loader.ts'

async function scene() {
  const clock = new TestClock()
  const leasehold = await Leasehold.open(memoryStore({ clock }), { clock, holder: 'a' })
  return { clock, leasehold }
}

describe('a caller that has changed the value', () => {
  it('does not get what was being loaded before its delete', async () => {
    const { clock, leasehold } = await scene()
    const cache = leasehold.cache<string>('c')
    const slow = slowLoader()
    const before = cache.get('k', slow.load).catch(() => 'none')
    await clock.advance(100)
    await cache.delete('k')
    const after = cache.get('k', () => 'new')
    slow.finish('old')
    await clock.advance(100)
    expect(await after).toBe('new')
    await before
    expect(await cache.peek('k')).toBe('new')
    await leasehold.close()
  })

  it.each(['0s', '1m'] as const)(
    'does not get what was loaded before its delete (local: %s)',
    async (local) => {
      const clock = new TestClock()
      const link = new FaultyStore(memoryStore({ clock }), clock)
      const leasehold = await Leasehold.open(link, { clock, holder: 'a', callTimeout: '1m' })
      const cache = leasehold.cache<string>('c', { local })
      // What was loaded is on its way to the store.
      link.fault = (call) => (call === 'update' ? { there: 5000 } : undefined)
      const before = cache.get('k', () => 'old')
      await clock.advance(100)
      await cache.delete('k')
      link.fault = () => undefined
      const after = cache.get('k', () => 'new')
      await clock.advance(10_000)
      expect(await after).toBe('new')
      await before
      expect(await cache.get('k', () => 'newest')).toBe('new')
      await leasehold.close()
    },
  )

  it('gets what it has set at once, however long a load takes', async () => {
    const { clock, leasehold } = await scene()
    const cache = leasehold.cache<string>('c', { local: '1m' })
    const slow = slowLoader()
    const before = cache.get('k', slow.load)
    await clock.advance(100)
    await cache.set('k', 'set')
    expect(await cache.get('k', () => 'loaded')).toBe('set')
    slow.finish('old')
    await clock.advance(100)
    expect(await before).toBe('set')
    await leasehold.close()
  })

  it('does not get a copy that was read before its set', async () => {
    const clock = new TestClock()
    const link = new FaultyStore(memoryStore({ clock }), clock)
    const leasehold = await Leasehold.open(link, { clock, holder: 'a', callTimeout: '1m' })
    const cache = leasehold.cache<string>('c', { local: '1m' })
    await cache.set('k', 'old')
    link.fault = () => ({ back: 5000 })
    const before = cache.get('k', () => 'loaded')
    await clock.advance(100)
    link.fault = () => undefined
    await cache.set('k', 'set')
    await clock.advance(10_000)
    expect(await before).toBe('old')
    expect(await cache.get('k', () => 'loaded')).toBe('set')
    await leasehold.close()
  })

  it('shares the newer load with all callers, also when the older load ends', async () => {
    const { clock, leasehold } = await scene()
    const cache = leasehold.cache<string>('c')
    const [old, young] = [slowLoader(), slowLoader()]
    const before = cache.get('k', old.load).catch(() => 'none')
    await clock.advance(100)
    await cache.delete('k')
    const after = cache.get('k', young.load)
    await clock.advance(100)
    old.finish('old')
    await before
    let wasAsked = false
    const joined = cache.get('k', () => {
      wasAsked = true
      return 'other'
    })
    young.finish('young')
    await clock.advance(100)
    expect([await after, await joined, wasAsked]).toEqual(['young', 'young', false])
    await leasehold.close()
  })
})
