import { describe, expect, it } from 'vitest'
import { type CacheOptions, Leasehold, LoadError } from '../../../src/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { FaultyStore } from '../../client/faulty-store.ts'
import { slowLoader } from './slow-loader.ts'

async function scene() {
  const clock = new TestClock()
  const store = memoryStore({ clock })
  const open = async (holder: string) => {
    const link = new FaultyStore(store, clock)
    const leasehold = await Leasehold.open(link, { clock, holder })
    const events: { event: string; key: string; level: string | undefined }[] = []
    leasehold.on('recipe-event', ({ event, key, level }) => events.push({ event, key, level }))
    return { link, leasehold, events }
  }
  return { clock, store, a: await open('a'), b: await open('b') }
}

const caught = (promise: Promise<unknown>) => promise.catch((error: unknown) => error)

describe('by default', () => {
  it('a value is fresh for ten minutes, and gone then', async () => {
    const { clock, a } = await scene()
    const cache = a.leasehold.cache<number>('c')
    await cache.set('k', 1)
    await clock.advance(10 * 60_000 - 1)
    expect(await cache.get('k', () => 2)).toBe(1)
    await clock.advance(1)
    expect(await cache.peek('k')).toBeUndefined()
    expect(await cache.get('k', () => 2)).toBe(2)
  })

  it('a loader may take a minute, and others wait for it for thirty seconds', async () => {
    const { clock, a, b } = await scene()
    const loader = slowLoader()
    const loading = caught(a.leasehold.cache('c').get('k', loader.load))
    await clock.advance(10)
    let waited: unknown
    caught(b.leasehold.cache('c').get('k', loader.load)).then((error) => (waited = error))
    await clock.advance(29_999)
    expect(waited).toBeUndefined()
    await clock.advance(1)
    expect(waited).toMatchObject({ code: 'timeout' })
    let lost: unknown
    loading.then((error) => (lost = error))
    await clock.advance(29_000)
    expect(lost).toBeUndefined()
    await clock.advance(1000)
    expect(lost).toMatchObject({ code: 'lost' })
  })

  it('a dead loader is replaced after ten seconds', async () => {
    const { clock, a, b } = await scene()
    caught(a.leasehold.cache('c').get('k', slowLoader().load))
    await clock.advance(10)
    a.link.freeze()
    const next = slowLoader()
    caught(b.leasehold.cache('c').get('k', next.load))
    await clock.advance(9900)
    expect(next.runs).toBe(0)
    await clock.advance(100)
    expect(next.runs).toBe(1)
  })

  it('nobody retries for a second after a failure', async () => {
    const { clock, a, b } = await scene()
    const fail = () => {
      throw new Error('no database')
    }
    await expect(a.leasehold.cache('c').get('k', fail)).rejects.toThrowError('no database')
    await clock.advance(999)
    const error = await caught(b.leasehold.cache('c').get('k', () => 1))
    expect(error).toBeInstanceOf(LoadError)
    expect(error).toMatchObject({ name: 'LoadError', key: 'k', holder: 'a' })
    await clock.advance(1)
    expect(await b.leasehold.cache('c').get('k', () => 1)).toBe(1)
  })

  it('nothing is served stale or from memory', async () => {
    const { a, b } = await scene()
    const cache = a.leasehold.cache<number>('c')
    expect(await cache.get('k', () => 1)).toBe(1)
    await b.leasehold.cache<number>('c').set('k', 2)
    expect(await cache.get('k', () => 3)).toBe(2)
    await b.leasehold.cache<number>('c').delete('k')
    expect(await cache.get('k', () => 3)).toBe(3)
  })
})

describe('options', () => {
  it.each<[CacheOptions, RegExp]>([
    [{ local: 1001, ttl: 1000 }, /^local 1001ms is longer than ttl 1s/],
    [{ loadTtl: 1001, loadMax: 1000 }, /^loadTtl 1001ms is longer than loadMax 1s/],
    [{ wait: 'soon' as never }, /wait/],
    [{ retryAfter: -1 }, /retryAfter/],
    ['short' as never, /^options is "short": it must be an object/],
  ])('%j are refused', async (options, message) => {
    const { a } = await scene()
    const code = 'invalid-argument'
    expect(() => a.leasehold.cache('c', options)).toThrowError(expect.objectContaining({ code }))
    expect(() => a.leasehold.cache('c', options)).toThrowError(message)
  })

  it('may make local as long as ttl, and loadTtl as long as loadMax', async () => {
    const { a } = await scene()
    expect(() => a.leasehold.cache('c', { local: 1000, ttl: 1000 })).not.toThrow()
    expect(() => a.leasehold.cache('c', { loadTtl: 1000, loadMax: 1000 })).not.toThrow()
  })
})

describe('the value that a loader returns', () => {
  it('must be JSON-serializable; waiters get the error too', async () => {
    const { a, b } = await scene()
    const failed = a.leasehold.cache('c').get('k', () => undefined)
    await expect(failed).rejects.toMatchObject({ code: 'invalid-argument' })
    const reported = b.leasehold.cache('c').get('k', () => 1)
    await expect(reported).rejects.toThrowError(
      /^loading "k" failed at a: the result of the loader of "k"/,
    )
  })

  it('is a separate copy for each caller', async () => {
    const { a } = await scene()
    const cache = a.leasehold.cache<{ n: number }>('c', { local: '1m' })
    const [one, other] = await Promise.all([1, 2].map(() => cache.get('k', () => ({ n: 1 }))))
    one!.n = 2
    expect(other).toEqual({ n: 1 })
    expect(await cache.get('k', () => ({ n: 3 }))).toEqual({ n: 1 })
  })

  it('is loaded by a function that gets the key, a signal and a fencing token', async () => {
    const { a } = await scene()
    let given: unknown
    await a.leasehold.cache('c').get('a/b', (context) => {
      given = context
      return 1
    })
    expect(given).toEqual({
      key: 'a/b',
      signal: expect.any(AbortSignal),
      token: expect.any(Number),
    })
  })
})

describe('a failure', () => {
  it('is published with its message, in at most 500 characters', async () => {
    const { a, b } = await scene()
    const message = `${'x'.repeat(499)}😀`
    const fail = () => {
      throw new Error(message)
    }
    await expect(a.leasehold.cache('c').get('k', fail)).rejects.toThrowError(message)
    const reported = (await caught(b.leasehold.cache('c').get('k', fail))) as Error
    expect(reported.message).toBe(`loading "k" failed at a: ${'x'.repeat(499)}\ufffd`)
  })

  it('may be anything that was thrown', async () => {
    const { a, b } = await scene()
    const fail = () => {
      throw 'just a string'
    }
    expect(await caught(a.leasehold.cache('c').get('k', fail))).toBe('just a string')
    await expect(b.leasehold.cache('c').get('k', fail)).rejects.toThrowError(/a: just a string$/)
  })

  it('is reported with the key of the load', async () => {
    const { a } = await scene()
    await caught(a.leasehold.cache('c').get('x/y', () => Promise.reject(new Error('no'))))
    expect(a.events).toEqual([{ event: 'failed', key: 'cache/c/x%2Fy/load', level: 'warn' }])
  })

  it('does not delay the next load if retryAfter is 0', async () => {
    const { store, a, b } = await scene()
    const options = { retryAfter: 0 }
    const cache = a.leasehold.cache<number>('c', options)
    await caught(cache.get('k', () => Promise.reject(new Error('no'))))
    expect((await store.read({ prefix: 'cache/' })).keys).toEqual([])
    expect(await b.leasehold.cache('c', options).get('k', () => 1)).toBe(1)
  })

  it('lasts at least the minimum ttl of the store', async () => {
    const { clock, a, b } = await scene()
    const { min } = a.leasehold.guarantees.ttl
    const cache = a.leasehold.cache<number>('c', { retryAfter: 1 })
    await caught(cache.get('k', () => Promise.reject(new Error('no'))))
    await clock.advance(min - 1)
    const next = b.leasehold.cache<number>('c')
    expect(await caught(next.get('k', () => 1))).toBeInstanceOf(LoadError)
    await clock.advance(1)
    expect(await next.get('k', () => 1)).toBe(1)
  })

  it('reaches a waiter in another process', async () => {
    const { clock, a, b } = await scene()
    const loader = slowLoader()
    const first = caught(a.leasehold.cache('c').get('k', loader.load))
    await clock.advance(10)
    const second = caught(b.leasehold.cache('c').get('k', loader.load))
    await clock.advance(10)
    loader.fail(new Error('no'))
    await clock.advance(10)
    expect(await first).toMatchObject({ message: 'no' })
    expect(await second).toMatchObject({ name: 'LoadError', holder: 'a', key: 'k' })
    expect(loader.runs).toBe(1)
  })
})

describe('copies in this process', () => {
  it('are kept for the last 1000 keys', async () => {
    const { a, b } = await scene()
    const cache = a.leasehold.cache<number>('c', { local: '1m' })
    const loaded: string[] = []
    const get = (key: string) => cache.get(key, () => loaded.push(key))
    for (let n = 0; n < 1000; n++) await get(`k${n}`)
    const before = a.link.calls.length
    for (let n = 0; n < 1000; n++) await get(`k${n}`)
    expect(a.link.calls.length).toBe(before)
    // One more: only the oldest is dropped.
    await get('new')
    const reads = a.link.count('read')
    await get('k1')
    await get('k999')
    await get('new')
    expect(a.link.count('read')).toBe(reads)
    await get('k0')
    expect(a.link.count('read')).toBe(reads + 1)
    await b.leasehold.close()
  })

  it('count from when they were last read', async () => {
    const { clock, a } = await scene()
    const cache = a.leasehold.cache<number>('c', { local: '1s' })
    const get = () => cache.get('k0', () => 0)
    await get()
    for (let n = 1; n < 1000; n++) await cache.get(`k${n}`, () => n)
    await clock.advance(1000)
    await get()
    await cache.get('one more', () => 1)
    const reads = a.link.count('read')
    await get()
    expect(a.link.count('read')).toBe(reads)
  })

  it('are also kept of values that were loaded here', async () => {
    const { a } = await scene()
    const cache = a.leasehold.cache<number>('c', { local: '1s' })
    await cache.get('k', () => 1)
    const before = a.link.calls.length
    expect(await cache.get('k', () => 2)).toBe(1)
    expect(a.link.calls.length).toBe(before)
  })

  it('are dropped by delete', async () => {
    const { a } = await scene()
    const cache = a.leasehold.cache<number>('c', { local: '1s' })
    await cache.get('k', () => 1)
    await cache.delete('k')
    expect(await cache.get('k', () => 2)).toBe(2)
  })
})

describe('in one process', () => {
  it('concurrent callers share one read and one load', async () => {
    const { clock, a } = await scene()
    const cache = a.leasehold.cache<string>('c')
    const loader = slowLoader()
    const gets = [1, 2, 3].map(() => cache.get('k', loader.load))
    await clock.advance(10)
    expect(loader.runs).toBe(1)
    loader.finish('value')
    expect(await Promise.all(gets)).toEqual(['value', 'value', 'value'])
    await cache.delete('k')
    expect(await cache.get('k', () => 'new')).toBe('new')
  })
})
