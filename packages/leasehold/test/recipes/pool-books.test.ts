import { describe, expect, it } from 'vitest'
import { Leasehold, type LeaseStore } from '../../src/index.ts'
import { bookFrom } from '../../src/recipes/pool/standing.ts'
import { usageOf } from '../../src/recipes/pool/usage.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { TestClock } from '../../src/testing/index.ts'

const MINUTE = 60_000
const BOOKS = 'pool/p/books'
const POOL = { resources: [{ name: 'gpu' }], halfLife: '1m' } as const

interface Work {
  readonly tenant: string
  readonly held?: number
}

/** A client of its own takes the resource for each tenant in turn, and closes. */
async function work(store: LeaseStore, clock: TestClock, works: readonly Work[]): Promise<void> {
  const leasehold = await Leasehold.open(store, { clock })
  for (const { tenant, held = 1000 } of works) {
    const permit = await leasehold.pool('p', POOL).take({ tenant, kind: 'k' })
    await clock.advance(held)
    await permit.release()
  }
  await leasehold.close()
}

/** What each tenant has used, as its part of the whole. */
async function usage(store: LeaseStore, clock: TestClock): Promise<Map<string, number>> {
  const { claims } = await store.read({ key: BOOKS, limit: 1000 })
  const books = claims.map(({ value }) => bookFrom(value))
  const used = usageOf(books, [], clock.now(), MINUTE)
  const sum = [...used.values()].reduce((total, each) => total + each, 0)
  return new Map([...used].map(([tenant, each]) => [tenant, each / sum]))
}

describe('the books of a pool', () => {
  it('keep what was used by clients whose books were taken over', async () => {
    const clock = new TestClock()
    const store = memoryStore({ clock })
    await work(store, clock, [{ tenant: 'heavy', held: 2 * MINUTE }])
    // More clients than books are kept.
    for (let at = 0; at < 30; at++) await work(store, clock, [{ tenant: 'light' }])
    const used = await usage(store, clock)
    expect([...used.keys()].sort()).toEqual(['heavy', 'light'])
    // 2 minutes, decayed for half a minute, against half a minute.
    expect(used.get('heavy')!).toBeGreaterThan(0.6)
  })

  it('live for ten half-lives after they were last written', async () => {
    const clock = new TestClock()
    const store = memoryStore({ clock })
    const leasehold = await Leasehold.open(store, { clock })
    const use = async () => {
      const permit = await leasehold.pool('p', POOL).take({ tenant: 't', kind: 'k' })
      await permit.release()
    }
    const books = async () => (await store.read({ key: BOOKS })).count
    await use()
    await clock.advance(8 * MINUTE)
    await use()
    await clock.advance(8 * MINUTE)
    expect(await books()).toBe(1)
    await clock.advance(3 * MINUTE)
    expect(await books()).toBe(0)
    await leasehold.close()
  })

  it('forget the tenants that used the least when there are too many', async () => {
    const clock = new TestClock()
    const store = memoryStore({ clock })
    const others = Array.from({ length: 260 }, (_, at) => ({ tenant: `t${at}`, held: 1 }))
    await work(store, clock, [{ tenant: 'heavy', held: MINUTE }, ...others])
    const used = await usage(store, clock)
    expect(used.size).toBe(256)
    expect(used.get('heavy')!).toBeGreaterThan(0.9)
  })
})
