import { describe, expect, it } from 'vitest'
import { Leasehold, LeaseholdError, type LeaseStore } from '../../../src/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { FaultyStore } from '../../client/faulty-store.ts'
import { changedStore } from '../../setup/changed-store.ts'
import { slowLoader } from './slow-loader.ts'

const STALE = { ttl: '10s', stale: '1m' } as const

/** A store that refuses child leases, as some engines' stores do. */
function withoutChildren(store: LeaseStore): LeaseStore {
  return changedStore(store, {
    guarantees: { ...store.guarantees, childLeases: false },
    grant: (request) => {
      if (request.parent !== undefined) throw new Error('this store has no child leases')
      return store.grant(request)
    },
  })
}

async function scene(childLeases: boolean) {
  const clock = new TestClock()
  const memory = memoryStore({ clock })
  const store = childLeases ? memory : withoutChildren(memory)
  const open = async (holder: string) => {
    const leasehold = await Leasehold.open(store, { clock, holder })
    const events: string[] = []
    leasehold.on('recipe-event', ({ event }) => events.push(event))
    return { leasehold, events }
  }
  /** The leases in the store, except those of the clients themselves. */
  const leases = async () => {
    const { leases } = await memory.read({ leases: true })
    return leases.filter(({ claims, children }) => claims > 0 || children > 0).length
  }
  return { clock, store: memory, leases, a: await open('a'), b: await open('b') }
}

describe.each([true, false])('a cache with stale values (child leases: %s)', (childLeases) => {
  it('returns a value for ttl plus stale, and no longer', async () => {
    const { clock, a, leases } = await scene(childLeases)
    const cache = a.leasehold.cache<string>('c', STALE)
    await cache.set('k', 'old')
    await clock.advance(69_999)
    expect(await cache.peek('k')).toBe('old')
    await clock.advance(1)
    expect(await cache.peek('k')).toBeUndefined()
    expect(await leases()).toBe(0)
  })

  it('reloads once in the background, then returns the new value', async () => {
    const { clock, a, b, leases } = await scene(childLeases)
    const [mine, theirs] = [a, b].map(({ leasehold }) => leasehold.cache<string>('c', STALE))
    const loader = slowLoader()
    await mine!.set('k', 'old')
    await clock.advance(10_000)
    for (const cache of [mine!, mine!, theirs!, theirs!]) {
      expect(await cache.get('k', loader.load)).toBe('old')
      await clock.advance(10)
    }
    expect(loader.runs).toBe(1)
    loader.finish('new')
    await clock.advance(10)
    expect(await mine!.get('k', loader.load)).toBe('new')
    expect(await theirs!.get('k', loader.load)).toBe('new')
    expect(loader.runs).toBe(1)
    // The value and its mark, and nothing of the previous value.
    expect(await leases()).toBe(2)
    await clock.advance(10_000)
    expect(await mine!.get('k', loader.load)).toBe('new')
    await clock.advance(10)
    expect(loader.runs).toBe(2)
  })

  it('keeps returning the stale value after a failure, and retries after retryAfter', async () => {
    const { clock, a, b } = await scene(childLeases)
    const options = { ...STALE, retryAfter: '5s' } as const
    const [mine, theirs] = [a, b].map(({ leasehold }) => leasehold.cache<string>('c', options))
    const loader = slowLoader()
    await mine!.set('k', 'old')
    await clock.advance(10_000)
    expect(await mine!.get('k', loader.load)).toBe('old')
    await clock.advance(10)
    loader.fail(new Error('no database'))
    await clock.advance(10)
    expect(a.events).toContain('failed')
    for (const cache of [mine!, theirs!]) {
      expect(await cache.get('k', loader.load)).toBe('old')
      await clock.advance(10)
    }
    expect(loader.runs).toBe(1)
    expect(b.events).toEqual([])
    await clock.advance(5000)
    expect(await mine!.get('k', loader.load)).toBe('old')
    await clock.advance(10)
    expect(loader.runs).toBe(2)
    loader.finish('new')
    await clock.advance(10)
    expect(await mine!.get('k', loader.load)).toBe('new')
  })

  it.each<[string, 'set' | 'delete']>([
    ['set', 'set'],
    ['deleted', 'delete'],
  ])('leaves nothing of a value that is %s', async (_, change) => {
    const { clock, a, store, leases } = await scene(childLeases)
    const cache = a.leasehold.cache<string>('c', STALE)
    await cache.set('k', 'old')
    await cache.get('l', () => 'other')
    const before = await leases()
    if (change === 'set') await cache.set('k', 'new')
    else await cache.delete('k')
    await clock.settle()
    const { keys } = await store.read({ prefix: 'cache/c/k/' })
    expect(keys.map(({ count }) => count)).toEqual(change === 'set' ? [1, 1] : [])
    expect(await leases()).toBe(change === 'set' ? before : before - 2)
    expect(await cache.peek('l')).toBe('other')
  })

  it('leaves nothing of a loader if the value was set meanwhile', async () => {
    const { clock, a, b, store } = await scene(childLeases)
    const loader = slowLoader()
    const loading = a.leasehold.cache<string>('c', STALE).get('k', loader.load)
    await clock.advance(10)
    await b.leasehold.cache<string>('c', STALE).set('k', 'set')
    await clock.advance(10)
    loader.finish('loaded')
    expect(await loading).toBe('set')
    const { keys } = await store.read({ prefix: 'cache/c/k/' })
    expect(keys.map(({ count }) => count)).toEqual([1, 1])
  })
})

it('a cache without stale values does not return those of a cache with them', async () => {
  const { clock, a } = await scene(true)
  await a.leasehold.cache<string>('c', STALE).set('k', 'old')
  const strict = a.leasehold.cache<string>('c')
  expect(await strict.get('k', () => 'new')).toBe('old')
  await clock.advance(10_000)
  expect(await strict.peek('k')).toBeUndefined()
  expect(await strict.get('k', () => 'new')).toBe('new')
})

describe('a reload in the background', () => {
  async function stale() {
    const clock = new TestClock()
    const memory = memoryStore({ clock })
    const open = async (holder: string) => {
      const link = new FaultyStore(memory, clock)
      const leasehold = await Leasehold.open(link, { clock, holder })
      const events: unknown[] = []
      leasehold.on('recipe-event', ({ recipe, event, key }) => events.push({ recipe, event, key }))
      return { link, events, cache: leasehold.cache<string>('c', { ...STALE, loadTtl: '2s' }) }
    }
    const [a, b] = [await open('a'), await open('b')]
    await a.cache.set('k', 'old')
    await clock.advance(10_000)
    return { clock, a, b }
  }

  it('is reported if the store refuses it', async () => {
    const { clock, a } = await stale()
    const error = new LeaseholdError('storage-full', 'no space')
    a.link.fault = (call) => (call === 'grant' ? { error } : undefined)
    expect(await a.cache.get('k', () => 'new')).toBe('old')
    await clock.settle()
    expect(a.events).toEqual([{ recipe: 'cache', event: 'failed', key: 'cache/c/k/load' }])
  })

  it('is repeated by the next caller if its loader died before storing the value', async () => {
    const { clock, a, b } = await stale()
    a.link.fault = (call) => (call === 'update' ? { lost: 'request' } : undefined)
    expect(await a.cache.get('k', () => 'lost')).toBe('old')
    await clock.advance(100)
    a.link.freeze()
    await clock.advance(2000)
    expect(await b.cache.get('k', () => 'new')).toBe('old')
    await clock.advance(100)
    expect(await b.cache.get('k', () => 'newest')).toBe('new')
  })
})
