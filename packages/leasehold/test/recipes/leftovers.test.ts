import { describe, expect, it } from 'vitest'
import { Client } from '../../src/client/index.ts'
import { Leasehold, LeaseholdError, type LeaseStore } from '../../src/index.ts'
import { HealthResults } from '../../src/recipes/registry/checker/health-results.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { TestClock } from '../../src/testing/index.ts'
import { FaultyStore } from '../client/faulty-store.ts'
import { changedStore } from '../setup/changed-store.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** The leases in the store, and those of them without a claim. */
async function leasesIn(store: LeaseStore) {
  const { leases } = await store.read({ leases: true, limit: 10_000 })
  return { all: leases.length, empty: leases.filter(({ claims }) => claims === 0).length }
}

interface World {
  readonly clock: TestClock
  readonly store: LeaseStore
  /** A separate client does some work, then closes or vanishes. */
  run(work: (leasehold: Leasehold) => Promise<void>, end: End): Promise<void>
}

const ENDS = ['closes', 'vanishes'] as const
type End = (typeof ENDS)[number]

function world(): World {
  const clock = new TestClock()
  const store = memoryStore({ clock })
  let clients = 0
  return {
    clock,
    store,
    async run(work, end) {
      const link = new FaultyStore(store, clock, true)
      const leasehold = await Leasehold.open(link, { clock, holder: `client-${++clients}` })
      await work(leasehold)
      if (end === 'closes') return leasehold.close()
      link.freeze()
    },
  }
}

const GPU = { resources: [{ name: 'gpu' }] }
/** More than the maximum number of records. */
const CLIENTS = 100

describe.each(ENDS)('a client that %s', (end) => {
  it('leaves a bounded number of records of a pool, each with a claim', async () => {
    const { clock, store, run } = world()
    for (let at = 0; at < CLIENTS; at++) {
      await run(async (leasehold) => {
        const permit = await leasehold.pool('p', GPU).take({ tenant: `t${at % 5}`, kind: 'k' })
        await clock.advance(10)
        await permit.release()
      }, end)
    }
    await clock.advance(MINUTE)
    // The definition and the records.
    expect(await leasesIn(store)).toEqual({ all: 1 + 8, empty: 0 })
  })

  it('leaves a bounded number of records, though it had not returned its permit', async () => {
    const { clock, store, run } = world()
    const resources = Array.from({ length: CLIENTS }, (_, at) => ({ name: `gpu-${at}` }))
    for (let at = 0; at < CLIENTS; at++) {
      await run(async (leasehold) => {
        await leasehold.pool('p', { resources }).take({ tenant: `t${at}`, kind: 'k', ttl: '10s' })
        await clock.advance(10)
      }, end)
    }
    await clock.advance(MINUTE)
    expect(await leasesIn(store)).toEqual({ all: 1 + 64, empty: 0 })
  })

  it.each<[string, number, (leasehold: Leasehold) => Promise<unknown>]>([
    ['a lock', 0, (leasehold) => leasehold.lock('a')],
    [
      'a lock that waits',
      0,
      async (leasehold) => {
        const held = await leasehold.lock('a')
        leasehold.lock('a').catch(() => {})
        return held
      },
    ],
    [
      'an election',
      0,
      async (leasehold) => {
        await leasehold.election('e').campaign()
      },
    ],
    [
      'a registration',
      0,
      async (leasehold) => {
        return leasehold.registry.register('s', { address: 'http://127.0.0.1:1' })
      },
    ],
    ['discovery', 0, (leasehold) => leasehold.registry.watch('s').ready],
    // Data that outlives its client on purpose: one lease each, however often it changes.
    [
      'a pool that is redefined',
      1,
      async (leasehold) => {
        const pool = leasehold.pool('p', GPU)
        await pool.status()
        for (const name of ['a', 'b', 'c']) await pool.redefine({ resources: [{ name }] })
      },
    ],
    [
      'a value that is set often',
      1,
      async (leasehold) => {
        const cache = leasehold.cache('c', { ttl: '1h' })
        for (let value = 0; value < 10; value++) await cache.set('k', value)
      },
    ],
    // Its mark has another lease, which ends earlier.
    [
      'a stale value that is set often',
      2,
      async (leasehold) => {
        const cache = leasehold.cache('c', { ttl: '1h', stale: '1h' })
        for (let value = 0; value < 10; value++) await cache.set('k', value)
      },
    ],
    [
      'a value that is loaded often',
      1,
      async (leasehold) => {
        const cache = leasehold.cache('c', { ttl: '1h' })
        for (let value = 0; value < 10; value++) {
          await cache.delete('k')
          await cache.get('k', () => value)
        }
      },
    ],
    [
      'a value that is deleted',
      0,
      async (leasehold) => {
        for (const stale of ['0s', '1h'] as const) {
          const cache = leasehold.cache('c', { ttl: '1h', stale })
          await cache.set('k', 1)
          await cache.delete('k')
          await cache.get('k', () => 2)
          await cache.delete('k')
        }
      },
    ],
    [
      'a session that is replaced',
      1,
      async (leasehold) => {
        const store = leasehold.sessionStore({ ttl: '1h' })
        for (const maxAge of [1, 2, 3]) {
          const cookie = { originalMaxAge: maxAge * HOUR, maxAge: maxAge * HOUR }
          await new Promise((done) => store.set('id', { cookie }, done))
        }
      },
    ],
    [
      'a ttl that was learnt',
      1,
      async (leasehold) => {
        for (let at = 0; at < 3; at++) {
          const held = await leasehold.lock('a', { ttl: 'adaptive', kind: 'k' })
          await held.release()
          await leasehold.adaptive.flush()
        }
      },
    ],
  ])('leaves of %s %i leases, each with a claim', async (_, all, work) => {
    const { clock, store, run } = world()
    const working = run(async (leasehold) => void (await work(leasehold)), end)
    await clock.advance(1000)
    await working
    await clock.advance(2 * MINUTE)
    expect(await leasesIn(store)).toEqual({ all, empty: 0 })
  })
})

describe('a checker whose results the store refuses', () => {
  it.each(['forbidden', 'limit-exceeded'] as const)(
    'needs one lease for them (%s)',
    async (code) => {
      const { clock, store } = world()
      const claim = async () => {
        throw new LeaseholdError(code, 'not here')
      }
      const client = new Client(changedStore(store, { claim }), { clock })
      const results = new HealthResults(client, () => {})
      results.set('key', 'text')
      await clock.advance(MINUTE)
      expect((await leasesIn(store)).all).toBe(1)
      results.stop()
      await client.close()
      await clock.advance(MINUTE)
      expect((await leasesIn(store)).all).toBe(0)
    },
  )
})
