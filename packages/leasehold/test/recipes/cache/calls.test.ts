import { describe, expect, it } from 'vitest'
import { Leasehold, LeaseholdError, type LeaseStore } from '../../../src/index.ts'
import type { Clock } from '../../../src/port/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { FaultyStore } from '../../client/faulty-store.ts'
import { changedStore } from '../../setup/changed-store.ts'
import { slowLoader } from './slow-loader.ts'

async function scene() {
  const clock = new TestClock()
  const store = memoryStore({ clock })
  const open = async (holder: string) => {
    const link = new FaultyStore(store, clock)
    return { link, leasehold: await Leasehold.open(link, { clock, holder }) }
  }
  /** The calls made over this link while `act` ran. */
  const callsOf = async (link: FaultyStore, act: () => Promise<unknown>) => {
    const before = link.calls.length
    await act()
    await clock.settle()
    return link.calls.slice(before)
  }
  return { clock, store, callsOf, a: await open('a'), b: await open('b'), c: await open('c') }
}

const fail = () => {
  throw new Error('no database')
}
const caught = (promise: Promise<unknown>) => promise.catch((error: unknown) => error)

describe('calls of a cache to the store', () => {
  it('are shared by all callers in one process', async () => {
    const { clock, callsOf, a } = await scene()
    const cache = a.leasehold.cache<string>('c')
    const loader = slowLoader()
    let gets: Promise<string>[] = []
    const calls = await callsOf(a.link, async () => {
      gets = [1, 2, 3].map(() => cache.get('k', loader.load))
      await clock.advance(10)
    })
    expect(calls).toEqual(['read', 'read', 'grant'])
    loader.finish('value')
    expect(await Promise.all(gets)).toEqual(['value', 'value', 'value'])
  })

  it('are one read for a stale value while this process reloads it', async () => {
    const { clock, callsOf, a } = await scene()
    const cache = a.leasehold.cache<string>('c', { ttl: '10s', stale: '1m' })
    await cache.set('k', 'old')
    await clock.advance(10_000)
    const loader = slowLoader()
    // Its claim is on the way: the store does not know about the load yet.
    a.link.fault = (call) => (call === 'grant' ? { there: 100 } : undefined)
    await cache.get('k', loader.load)
    await clock.settle()
    const ask = () => callsOf(a.link, () => cache.get('k', loader.load))
    expect(await ask()).toEqual(['read'])
    await clock.advance(100)
    expect(loader.runs).toBe(1)
    expect(await ask()).toEqual(['read'])
  })

  it('are no claim while another loads, and one read per change', async () => {
    const { clock, callsOf, a, b } = await scene()
    const loader = slowLoader()
    const first = a.leasehold.cache<string>('c').get('k', loader.load)
    await clock.advance(10)
    let second: Promise<string> | undefined
    const waiting = await callsOf(b.link, async () => {
      second = b.leasehold.cache<string>('c').get('k', loader.load)
      await clock.advance(10)
    })
    expect(waiting.filter((call) => call === 'grant')).toHaveLength(1)
    const woken = await callsOf(b.link, async () => {
      loader.finish('value')
      expect([await first, await second]).toEqual(['value', 'value'])
    })
    // The loader claims the key of the value, then stores the value.
    expect(woken).toEqual(['read', 'read'])
  })

  it('are only reads of the entry when the awaited loader fails', async () => {
    const { clock, callsOf, a, b } = await scene()
    let failNow: (error: Error) => void = () => {}
    const load = () => new Promise<string>((_, reject) => (failNow = reject))
    const first = caught(a.leasehold.cache('c').get('k', load))
    await clock.advance(10)
    const second = caught(b.leasehold.cache('c').get('k', load))
    await clock.advance(10)
    const calls = await callsOf(b.link, async () => {
      failNow(new Error('no database'))
      await first
      expect(await second).toMatchObject({ name: 'LoadError', holder: 'a' })
    })
    // The loader publishes its failure, then releases its claim.
    expect(calls).toEqual(['read', 'read'])
  })

  it('are no claim after another loader has failed', async () => {
    const { callsOf, a, b } = await scene()
    await caught(a.leasehold.cache('c').get('k', fail))
    const calls = await callsOf(b.link, () => caught(b.leasehold.cache('c').get('k', fail)))
    expect(calls).toEqual(['read', 'read'])
  })

  it('are no claim if the value arrived after the first read', async () => {
    const { clock, callsOf, a, b } = await scene()
    let reads = 0
    b.link.fault = (call) => (call === 'read' && ++reads === 2 ? { there: 100 } : undefined)
    const calls = await callsOf(b.link, async () => {
      const got = b.leasehold.cache<string>('c').get('k', () => 'loaded')
      await clock.advance(10)
      await a.leasehold.cache<string>('c').set('k', 'set')
      await clock.advance(100)
      expect(await got).toBe('set')
    })
    expect(calls).toEqual(['read', 'read'])
  })

  it('end the previous value, but nothing that ends with it', async () => {
    const { callsOf, a } = await scene()
    for (const stale of ['0s', '1m'] as const) {
      const cache = a.leasehold.cache<string>(`c${stale}`, { stale })
      await cache.set('k', 'old')
      const calls = await callsOf(a.link, () => cache.set('k', 'new'))
      expect(calls.filter((call) => call === 'revoke')).toHaveLength(1)
    }
  })

  it('end the mark of a failed load once', async () => {
    const { callsOf, store, a, b } = await scene()
    await caught(a.leasehold.cache('c').get('k', fail))
    const cache = b.leasehold.cache<string>('c')
    const calls = await callsOf(b.link, () => cache.set('k', 'new'))
    expect(calls.filter((call) => call === 'revoke')).toHaveLength(1)
    const { keys } = await store.read({ prefix: 'cache/c/k/' })
    expect(keys.map(({ count }) => count)).toEqual([1, 1])
  })

  it('end only the claims of a key that is deleted during a load', async () => {
    const { clock, callsOf, a, b } = await scene()
    void caught(a.leasehold.cache('c').get('k', slowLoader().load))
    await clock.advance(10)
    const calls = await callsOf(b.link, () => b.leasehold.cache('c').delete('k'))
    expect(calls.filter((call) => call === 'revoke')).toHaveLength(1)
  })
})

describe('the history of an entry', () => {
  it('says why its claims ended', async () => {
    const { clock, store, a, b } = await scene()
    const whys = async (key: string) => {
      const { tenures } = await store.read({ history: `cache/c/k/${key}` })
      return tenures.map(({ end }) => end.why)
    }
    const [mine, theirs] = [a.leasehold.cache<string>('c'), b.leasehold.cache<string>('c')]
    void caught(mine.get('k', slowLoader().load))
    await clock.advance(10)
    await theirs.set('k', 'first')
    expect(await whys('load')).toEqual(['superseded'])
    await theirs.set('k', 'second')
    expect(await whys('value')).toEqual(['replaced'])
    await theirs.delete('k')
    expect((await whys('value')).sort()).toEqual(['deleted', 'replaced'])
  })
})

describe('of two waiters for a loader that lost its lease', () => {
  it('one loads, and the other keeps waiting', async () => {
    const { clock, store, a, b, c } = await scene()
    void caught(a.leasehold.cache('c').get('k', slowLoader().load))
    await clock.advance(10)
    // Both read before one of them has the claim.
    for (const { link } of [b, c]) link.fault = () => ({ back: 10 })
    const loader = slowLoader()
    const gets = [b, c].map(({ leasehold }) => leasehold.cache<string>('c').get('k', loader.load))
    await clock.advance(100)
    await store.revoke({ target: { key: 'cache/c/k/load' } })
    await clock.advance(100)
    expect(loader.runs).toBe(1)
    const before = [b, c].map(({ link }) => link.calls.length)
    loader.finish('value')
    await clock.advance(100)
    expect(await Promise.all(gets)).toEqual(['value', 'value'])
    const calls = [b, c].map(({ link }, at) => link.calls.slice(before[at]))
    expect(calls).toEqual([
      ['read', 'grant', 'update', 'release', 'revoke'],
      ['read', 'read'],
    ])
  })
})

describe('a waiter', () => {
  it('keeps the process running, and leaves neither a timer nor a watch', async () => {
    const clock = new TestClock()
    const alive = new Set<object>()
    const timed: Clock = {
      now: () => clock.now(),
      asleep: () => clock.asleep(),
      defer: (run) => clock.defer(run),
      timer: (time, run, keepAlive) => {
        const timer = clock.timer(time, () => {
          alive.delete(timer)
          run()
        })
        if (keepAlive) alive.add(timer)
        return {
          cancel: () => {
            alive.delete(timer)
            timer.cancel()
          },
        }
      },
    }
    const memory = memoryStore({ clock })
    let watches = 0
    const watched = changedStore(memory, {
      watch: (target, observer) => {
        watches++
        const watch = memory.watch(target, observer)
        return {
          close: () => {
            watches--
            watch.close()
          },
        }
      },
    })
    const a = await Leasehold.open(memory, { clock, holder: 'a' })
    const b = await Leasehold.open(watched, { clock: timed, holder: 'b' })
    const loader = slowLoader()
    const first = a.cache<string>('c').get('k', loader.load)
    await clock.advance(10)
    const [timers, before] = [alive.size, watches]
    const second = b.cache<string>('c').get('k', loader.load)
    await clock.advance(10)
    expect([alive.size - timers, watches - before]).toEqual([1, 1])
    loader.finish('value')
    expect([await first, await second]).toEqual(['value', 'value'])
    await clock.settle()
    expect([alive.size - timers, watches - before]).toEqual([0, 0])
  })

  it('does not exceed its timeout, even if it passes during a read', async () => {
    const { clock, store, a, b } = await scene()
    void caught(a.leasehold.cache('c').get('k', slowLoader().load))
    await clock.advance(10)
    b.link.fault = (call) => (call === 'read' ? { back: 100 } : undefined)
    let outcome: unknown
    const cache = b.leasehold.cache('c', { wait: '250ms' })
    caught(cache.get('k', fail)).then((error) => (outcome = error))
    const touch = () =>
      store.grant({ holder: 'x', ttl: 60_000, claims: [{ key: 'cache/c/k/value' }] })
    // Something changes during the read, so it is not waiting at the timeout.
    for (let step = 0; step < 60; step++) {
      await clock.advance(10)
      if (step % 5 === 0 && step < 44) await touch()
    }
    expect(outcome).toMatchObject({ code: 'timeout' })
  })
})

describe('a misbehaving store', () => {
  const answering = (calls: number) => (memory: LeaseStore) => {
    let left = calls
    return changedStore(memory, {
      grant: (request) =>
        left-- > 0
          ? memory.grant(request)
          : Promise.resolve({ outcome: 'busy', ahead: [], revision: 1 } as never),
    })
  }

  it.each([
    ['a value', '0s', 0],
    ['a mark', '1m', 1],
  ] as const)('is not believed if it is busy for %s that may wait', async (_, stale, calls) => {
    const clock = new TestClock()
    const store = answering(calls)(memoryStore({ clock }))
    const leasehold = await Leasehold.open(store, { clock, holder: 'a' })
    const set = leasehold.cache<string>('c', { stale }).set('k', 'v')
    await expect(set).rejects.toThrow('answered with busy')
  })

  it('that refuses to end a lease makes the change fail', async () => {
    const { a } = await scene()
    const cache = a.leasehold.cache<string>('c')
    await cache.set('k', 'old')
    const error = new LeaseholdError('storage-full', 'no space')
    a.link.fault = (call) => (call === 'revoke' ? { error } : undefined)
    await expect(cache.set('k', 'new')).rejects.toMatchObject({ code: 'storage-full' })
  })
})
