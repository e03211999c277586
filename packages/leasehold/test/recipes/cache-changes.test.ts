import { describe, expect, it } from 'vitest'
import { Leasehold } from '../../src/index.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { TestClock } from '../../src/testing/index.ts'
import { FaultyStore } from '../client/faulty-store.ts'
import { slowLoader } from './slow-loader.ts'

async function scene() {
  const clock = new TestClock()
  const leasehold = await Leasehold.open(memoryStore({ clock }), { clock, holder: 'a' })
  return { clock, leasehold }
}

describe('one who asks after a change of its own', () => {
  it('is not given what was being loaded before it deleted', async () => {
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
    'is not given what was loaded before it deleted (local: %s)',
    async (local) => {
      const clock = new TestClock()
      const line = new FaultyStore(memoryStore({ clock }), clock)
      const leasehold = await Leasehold.open(line, { clock, holder: 'a', callTimeout: '1m' })
      const cache = leasehold.cache<string>('c', { local })
      // What was loaded is on its way to the store.
      line.fault = (call) => (call === 'update' ? { there: 5000 } : undefined)
      const before = cache.get('k', () => 'old')
      await clock.advance(100)
      await cache.delete('k')
      line.fault = () => undefined
      const after = cache.get('k', () => 'new')
      await clock.advance(10_000)
      expect(await after).toBe('new')
      await before
      expect(await cache.get('k', () => 'newest')).toBe('new')
      await leasehold.close()
    },
  )

  it('is given at once what it has set, whatever takes how long to load', async () => {
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

  it('is not given a copy of what was read before it set', async () => {
    const clock = new TestClock()
    const line = new FaultyStore(memoryStore({ clock }), clock)
    const leasehold = await Leasehold.open(line, { clock, holder: 'a', callTimeout: '1m' })
    const cache = leasehold.cache<string>('c', { local: '1m' })
    await cache.set('k', 'old')
    line.fault = () => ({ back: 5000 })
    const before = cache.get('k', () => 'loaded')
    await clock.advance(100)
    line.fault = () => undefined
    await cache.set('k', 'set')
    await clock.advance(10_000)
    expect(await before).toBe('old')
    expect(await cache.get('k', () => 'loaded')).toBe('set')
    await leasehold.close()
  })

  it('shares what is loaded since with all who ask, also when the load before it ends', async () => {
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
