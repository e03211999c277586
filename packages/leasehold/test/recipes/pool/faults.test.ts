import { describe, expect, it } from 'vitest'
import { Leasehold, type Permit } from '../../../src/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { SeededRandom } from '../../../src/testing/sim/index.ts'
import { FaultyStore } from '../../client/faulty-store.ts'
import { gpus } from './clients.ts'

describe('a pool with bad connections', () => {
  it.each([1, 2, 3, 4, 5])(
    'has no more permits than resources and serves everybody (seed %i)',
    async (seed) => {
      const random = new SeededRandom(seed)
      const clock = new TestClock()
      const store = memoryStore({ clock })
      const clients = await Promise.all(
        ['a', 'b', 'c'].map((holder) => {
          const link = new FaultyStore(store, clock)
          link.fault = () => ({
            there: random.between(0, 300),
            back: random.between(0, 300),
            ...(random.chance(0.05) && { lost: random.pick(['request', 'reply'] as const) }),
          })
          return Leasehold.open(link, { holder, clock, callTimeout: '2s' })
        }),
      )
      const held = new Map<string, number>()
      let served = 0
      const use = async (client: Leasehold, tenant: string) => {
        const permit: Permit = await client.pool('gpu', gpus(2)).take({
          tenant,
          count: random.integer(1, 2),
          strategy: 'lock',
          ttl: '20s',
        })
        for (const resource of permit.resources) {
          expect(held.get(resource)).toBeUndefined()
          held.set(resource, permit.token)
        }
        await new Promise<void>((resolve) => void clock.timer(clock.now() + 500, resolve))
        for (const resource of permit.resources) held.delete(resource)
        served++
        await permit.release().catch(() => {})
      }
      const all = clients.flatMap((client, i) => [0, 1, 2, 3].map(() => use(client, `t${i}`)))
      for (let i = 0; i < 600 && served < all.length; i++) await clock.advance(1000)
      expect(served).toBe(all.length)
      for (const client of clients) void client.close()
      await clock.advance(60_000)
      await Promise.allSettled(all)
    },
  )

  it('keeps its waiters in the queue through an outage longer than their lease', async () => {
    const clock = new TestClock()
    const store = memoryStore({ clock })
    const link = new FaultyStore(store, clock)
    const near = await Leasehold.open(store, { holder: 'near', clock })
    const far = await Leasehold.open(link, { holder: 'far', clock })
    const first = await near.pool('gpu', gpus(1)).take({ tenant: 'x' })
    const waits = far.pool('gpu').take({ tenant: 'y' })
    await clock.advance(1000)
    link.freeze()
    await clock.advance(60_000)
    expect((await store.read({ key: 'pool/gpu/line' })).count).toBe(0)
    link.thaw()
    await clock.advance(20_000)
    await first.release()
    await clock.advance(20_000)
    expect((await waits).held).toBe(true)
    await Promise.all([near.close(), far.close()])
  })

  it('decides again after an outdated view, and never queues for a single resource', async () => {
    const clock = new TestClock()
    const store = memoryStore({ clock })
    const link = new FaultyStore(store, clock)
    const near = await Leasehold.open(store, { holder: 'near', clock })
    const far = await Leasehold.open(link, { holder: 'far', clock })
    const first = await near.pool('gpu', gpus(1)).take({ tenant: 'x' })
    const waits = far.pool('gpu').take({ tenant: 'y' })
    await clock.advance(100)
    link.fault = (call) => (call === 'grant' ? { there: 300, back: 500 } : undefined)
    await first.release()
    await clock.advance(100)
    // Another takes and returns it before the answer says that it was not free.
    const claims = [{ key: 'pool/gpu/r/gpu-0' }]
    const fast = await store.grant({ holder: 'fast', ttl: 60_000, claims })
    await clock.advance(250)
    expect((await store.read({ key: 'pool/gpu/r/gpu-0' })).count).toBe(1)
    await store.revoke({ target: { lease: fast.outcome === 'granted' ? fast.lease : '' } })
    link.fault = () => undefined
    await clock.advance(1000)
    expect((await waits).held).toBe(true)
    await Promise.all([near.close(), far.close()])
  })

  it('makes no calls while it waits, except for its heartbeat', async () => {
    const clock = new TestClock()
    const store = memoryStore({ clock })
    const link = new FaultyStore(store, clock, true)
    const client = await Leasehold.open(link, { holder: 'a', clock })
    const pool = client.pool('gpu', gpus(1))
    await pool.take({ tenant: 'x', ttl: '2h' })
    const waits = Array.from({ length: 20 }, () => pool.take({ tenant: 'x' }))
    for (const wait of waits) wait.catch(() => {})
    await clock.advance(1000)
    const before = link.calls.length
    await clock.advance(60 * 60_000)
    const calls = link.calls.slice(before)
    expect(new Set(calls)).toEqual(new Set(['renew']))
    expect(calls.length).toBeLessThan(600)
    await client.close()
  })
})

it('a permit is preempted even if another request withdrew its notice slowly', async () => {
  const clock = new TestClock()
  const store = memoryStore({ clock })
  const link = new FaultyStore(store, clock)
  const near = await Leasehold.open(store, { holder: 'near', clock })
  const far = await Leasehold.open(link, { holder: 'far', clock })
  const pool = near.pool('gpu', { ...gpus(1), notice: '10s' })
  const low = await pool.take({ tenant: 'x', preemptible: true })
  const giveUp = new AbortController()
  const first = far.pool('gpu').take({ tenant: 'x', priority: 5, signal: giveUp.signal })
  first.catch(() => {})
  await clock.advance(1000)
  const second = pool.take({ tenant: 'x', priority: 4 })
  await clock.advance(1000)
  expect(low.notice.aborted).toBe(true)
  // Its queue claim is released before its notice.
  let releases = 0
  link.fault = (call) => (call === 'release' && ++releases === 2 ? { there: 500 } : undefined)
  giveUp.abort()
  await clock.advance(60_000)
  expect(low.state).toBe('lost')
  expect((await second).held).toBe(true)
  await Promise.all([near.close(), far.close()])
})
