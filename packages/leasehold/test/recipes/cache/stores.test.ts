import { describe, expect, it } from 'vitest'
import { isLeaseholdError, LoadError } from '../../../src/index.ts'
import { inNewScene, SCENES } from '../scenes/scene.ts'
import { slowLoader } from './slow-loader.ts'

describe.each(SCENES)('a cache on $name', ({ make }) => {
  const inScene = inNewScene(make)

  it(
    'loads a missing value once, however many processes miss it at once',
    inScene(async (scene) => {
      const names = Array.from({ length: 50 }, (_, i) => `p${i}`)
      const caches = await Promise.all(names.map((name) => scene.open(name)))
      const loader = slowLoader()
      const gets = caches.map((it) => it.cache<string>('c').get('k', loader.load))
      await scene.until('somebody loads', () => loader.runs > 0)
      await scene.pass(50)
      loader.finish('value')
      expect(new Set(await Promise.all(gets))).toEqual(new Set(['value']))
      expect(loader.runs).toBe(1)
      expect(await caches[7]!.cache('c').get('k', loader.load)).toBe('value')
      expect(loader.runs).toBe(1)
      expect(loader.tokens[0]).toBeGreaterThan(0)
    }),
  )

  it(
    'lets the next one load when a loader dies',
    inScene(async (scene) => {
      const [a, b] = [await scene.open('a'), await scene.open('b')]
      const [dead, next] = [slowLoader(), slowLoader()]
      const options = { loadTtl: '2s' } as const
      a.cache<string>('c', options)
        .get('k', dead.load)
        .catch(() => undefined)
      await scene.until('a loads', () => dead.runs === 1)
      const get = b.cache<string>('c', options).get('k', next.load)
      scene.kill(a)
      await scene.pass(500)
      expect(next.runs).toBe(0)
      await scene.until('b loads', () => next.runs === 1)
      next.finish('by b')
      expect(await get).toBe('by b')
    }),
  )

  it(
    'does not store what was loaded before it was deleted or set',
    inScene(async (scene) => {
      const [a, b] = [await scene.open('a'), await scene.open('b')]
      const [mine, theirs] = [a.cache<string>('c'), b.cache<string>('c')]
      const loader = slowLoader()
      const first = mine.get('k', loader.load).catch((error: unknown) => error)
      await scene.until('a loads', () => loader.runs === 1)
      await theirs.delete('k')
      loader.finish('old')
      await first
      expect(await theirs.peek('k')).toBeUndefined()
      const second = mine.get('k', loader.load).catch((error: unknown) => error)
      await scene.until('a loads again', () => loader.runs === 2)
      await theirs.set('k', 'set')
      await scene.until('a notices', () => loader.signals[1]!.aborted)
      loader.finish('old')
      expect(await second).toBe('set')
      expect(await theirs.peek('k')).toBe('set')
      expect(await mine.get('k', loader.load)).toBe('set')
    }),
  )

  it(
    'returns the stale value during a reload, then the new one',
    inScene(async (scene) => {
      const [a, b] = [await scene.open('a'), await scene.open('b')]
      const options = { ttl: '2s', stale: '1m' } as const
      const [mine, theirs] = [a.cache<string>('c', options), b.cache<string>('c', options)]
      await mine.set('k', 'old')
      const loader = slowLoader()
      expect(await mine.get('k', loader.load)).toBe('old')
      expect(loader.runs).toBe(0)
      await scene.pass(2100)
      expect(await theirs.peek('k')).toBe('old')
      await scene.until('one loads', async () => {
        expect(await mine.get('k', loader.load)).toBe('old')
        return loader.runs === 1
      })
      expect(await theirs.get('k', loader.load)).toBe('old')
      expect(await mine.get('k', loader.load)).toBe('old')
      loader.finish('new')
      await scene.until('it is stored', async () => (await theirs.peek('k')) === 'new')
      await scene.pass(50)
      expect(await theirs.get('k', loader.load)).toBe('new')
      expect(loader.runs).toBe(1)
      const { keys } = await scene.store.read({ prefix: 'cache/c/k/value' })
      expect(keys[0]!.count).toBe(1)
    }),
  )

  it(
    'forgets values after their ttl',
    inScene(async (scene) => {
      const a = await scene.open('a')
      const cache = a.cache<number>('c', { ttl: '2s' })
      let n = 0
      expect(await cache.get('k', () => ++n)).toBe(1)
      expect(await cache.get('k', () => ++n)).toBe(1)
      await scene.pass(2000)
      await scene.until('it is forgotten', async () => (await cache.peek('k')) === undefined)
      expect(await cache.get('k', () => ++n)).toBe(2)
      await cache.delete('k')
      expect(await cache.get('k', () => ++n)).toBe(3)
    }),
  )

  it(
    'passes the error of a loader to all waiters, and nobody retries for a while',
    inScene(async (scene) => {
      const processes = await Promise.all(['a', 'b', 'c'].map((name) => scene.open(name)))
      const loader = slowLoader()
      const outcomes = processes.map((it) =>
        it
          .cache<string>('c', { retryAfter: '2s' })
          .get('k', loader.load)
          .catch((error: unknown) => error),
      )
      await scene.until('one loads', () => loader.runs === 1)
      await scene.pass(50)
      loader.fail(new Error('no database'))
      const errors = (await Promise.all(outcomes)) as Error[]
      expect(errors.every((error) => error.message.includes('no database'))).toBe(true)
      expect(errors.filter((error) => error instanceof LoadError)).toHaveLength(2)
      const again = processes[0]!.cache<string>('c').get('k', loader.load)
      await expect(again).rejects.toThrowError(/loading "k" failed at [abc]: no database/)
      expect(loader.runs).toBe(1)
      await scene.pass(2000)
      const tried = () => processes[0]!.cache<string>('c').get('k', () => 'better')
      await scene.until('it may be tried again', () =>
        tried().then(
          () => true,
          () => false,
        ),
      )
      expect(await tried()).toBe('better')
    }),
  )

  it(
    'refuses what it cannot store, and says what the limit is',
    inScene(async (scene) => {
      const a = await scene.open('a')
      const cache = a.cache<unknown>('c', { retryAfter: 0 })
      const long = 'x'.repeat(70_000)
      const limit = /the value cannot be stored: the value has \d+ bytes: at most \d+ are allowed/
      await expect(cache.set('k', long)).rejects.toThrowError(limit)
      await expect(cache.get('k', () => long)).rejects.toThrowError(limit)
      await expect(cache.get('k', () => undefined)).rejects.toThrowError(/JSON cannot hold/)
      await expect(cache.get('k', 5 as never)).rejects.toThrowError(/the loader of "k" is 5/)
      await expect(cache.get('', () => 1)).rejects.toThrowError(/the key is ""/)
      expect(() => a.cache('a/b')).toThrowError(/name of the cache is "a\/b"/)
      expect(() => a.cache('c', { ttl: '1s', local: '2s' })).toThrowError(/local 2s is longer/)
      expect(() => a.cache('c', { loadMax: '1s' })).toThrowError(
        /loadTtl 10s is longer than loadMax/,
      )
      expect(await cache.get('a/b', () => null)).toBeNull()
      expect(await cache.peek('a')).toBeUndefined()
    }),
  )

  it(
    'respects its timeout, and does not wait after the client is closed',
    inScene(async (scene) => {
      const [a, b, c] = [await scene.open('a'), await scene.open('b'), await scene.open('c')]
      const loader = slowLoader()
      a.cache<string>('c')
        .get('k', loader.load)
        .catch(() => undefined)
      await scene.until('a loads', () => loader.runs === 1)
      const impatient = b
        .cache('c', { wait: '300ms' })
        .get('k', loader.load)
        .catch((error: unknown) => error)
      const closing = c
        .cache('c')
        .get('k', loader.load)
        .catch((error: unknown) => error)
      await scene.pass(400)
      expect(isLeaseholdError(await impatient, 'timeout')).toBe(true)
      await c.close()
      await scene.pass(10)
      expect(isLeaseholdError(await closing, 'closed')).toBe(true)
    }),
  )
})
