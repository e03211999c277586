import { describe, expect, it } from 'vitest'
import type { Permit, PoolStatus } from '../../../src/index.ts'
import { failing, gpus, testClients } from './clients.ts'

const HOUR = 3600_000

const caught = (error: unknown) => error

describe('the definition', () => {
  it('is fixed within a process: a different one is refused', async () => {
    const { open } = testClients()
    const { leasehold } = await open('a')
    const pool = leasehold.pool('p', gpus(1))
    expect(leasehold.pool('p', gpus(1))).toBe(pool)
    expect(() => leasehold.pool('p', gpus(2))).toThrow(/already has a different definition/)
    expect(() => leasehold.pool('a/b')).toThrow(/^the pool's name is "a\/b"/)
  })

  it('can be given after the pool was opened without one', async () => {
    const { open } = testClients()
    const { leasehold } = await open('a')
    const pool = leasehold.pool('p')
    await expect(pool.take({ tenant: 'x' })).rejects.toThrow(/"p" is not defined/)
    leasehold.pool('p', gpus(1))
    expect((await pool.take({ tenant: 'x' })).held).toBe(true)
  })

  it('that could not be published is published at the next use', async () => {
    const { open } = testClients()
    const { leasehold, link } = await open('a')
    link.fault = failing('grant')
    const pool = leasehold.pool('p', gpus(1))
    await expect(pool.take({ tenant: 'x' })).rejects.toMatchObject({ code: 'storage-full' })
    link.fault = () => undefined
    expect((await pool.take({ tenant: 'x' })).held).toBe(true)
  })

  it('is the last one after redefine, for all processes', async () => {
    const { clock, store, open } = testClients()
    const [a, b] = [await open('a'), await open('b')]
    const pool = a.leasehold.pool('p', gpus(1))
    const held = await pool.take({ tenant: 'x' })
    const other = b.leasehold.pool('p')
    const waits = [1, 2].map(() => other.take({ tenant: 'x' }))
    await clock.settle()
    await Promise.all([other.redefine(gpus(2)), pool.redefine(gpus(3))])
    await clock.settle()
    expect((await Promise.all(waits)).map((permit) => permit.resource)).toEqual(['gpu-1', 'gpu-2'])
    expect((await store.read({ key: 'pool/p/definition' })).count).toBe(1)
    expect(held.held).toBe(true)
    expect(a.leasehold.pool('p', gpus(3))).toBe(pool)
    await Promise.all([a.leasehold.close(), b.leasehold.close()])
    const c = await open('c')
    expect((await c.leasehold.pool('p').status()).resources).toHaveLength(3)
    await expect(pool.redefine({ resources: [] })).rejects.toMatchObject({
      code: 'invalid-argument',
    })
  })
})

describe('the status', () => {
  it('shows everything of a pool', async () => {
    const { clock, open } = testClients()
    const [a, b] = [await open('a'), await open('b')]
    const resources = [{ name: 'gpu', shares: 2, memory: 80 }, { name: 'cpu' }]
    const tenants = { x: { weight: 1 }, y: { weight: 1 }, idle: {} }
    const pool = a.leasehold.pool('p', { resources, tenants, notice: '1m' })
    const since = clock.now()
    const where = 'memory = 80'
    const low = await pool.take({ tenant: 'x', kind: 'k', where, shares: 1, preemptible: true })
    await clock.advance(1000)
    const urgent = { tenant: 'x', kind: 'u', where, priority: 5 }
    b.leasehold.pool('p').take(urgent).catch(caught)
    await clock.advance(1000)
    const status = await pool.status()
    expect(status.resources).toEqual([
      {
        name: 'gpu',
        attributes: { memory: 80 },
        shares: 2,
        free: 1,
        permits: [
          {
            token: low.claimToken,
            holder: 'a',
            tenant: 'x',
            kind: 'k',
            priority: 0,
            preemptible: true,
            shares: 1,
            since,
            until: since + HOUR,
            noticed: true,
          },
        ],
      },
      { name: 'cpu', attributes: {}, shares: 1, free: 1, permits: [] },
    ])
    expect(status.queue).toEqual([
      {
        token: expect.any(Number),
        holder: 'b',
        tenant: 'x',
        kind: 'u',
        priority: 5,
        count: 1,
        since: since + 1000,
        forecast: { wait: HOUR - 2000, basis: 'booked' },
      },
    ])
    expect(status.tenants).toEqual([
      { tenant: 'idle', holds: 0, guaranteed: 0, waiting: 0, used: 0 },
      { tenant: 'x', holds: 0.5, guaranteed: 2, waiting: 1, used: 1 },
      { tenant: 'y', holds: 0, guaranteed: 0, waiting: 0, used: 0 },
    ])
    expect(status.age).toBeLessThan(5000)
  })

  it('covers more than one page of keys', async () => {
    const { open } = testClients()
    const { leasehold } = await open('a')
    const resources = Array.from({ length: 21 }, (_, i) => ({ name: `r${i}`, shares: 50 }))
    const pool = leasehold.pool('p', { resources })
    const permits: Permit[] = []
    for (const _ of resources) permits.push(await pool.take({ tenant: 't' }))
    const status = await pool.status()
    const untils = status.resources.map((resource) => resource.permits[0]!.until)
    expect(untils.every((until) => typeof until === 'number')).toBe(true)
    expect(status.resources.map(({ free }) => free)).toEqual(resources.map(() => 0))
  })

  it('costs one read, whatever else is in the store', async () => {
    const { clock, store, open } = testClients()
    // More than a page of keys.
    for (let at = 0; at < 12; at++) {
      const claims = Array.from({ length: 100 }, (_, key) => ({ key: `other/${at}/${key}` }))
      await store.grant({ holder: 'x', ttl: HOUR, claims })
    }
    const { leasehold, link } = await open('a')
    const pool = leasehold.pool('p', gpus(2))
    await pool.take({ tenant: 't' })
    await clock.settle()
    const before = link.calls.length
    await pool.status()
    expect(link.calls.slice(before)).toEqual(['read'])
  })

  it('is delivered one at a time, the last one with all changes, and not after stop', async () => {
    const { clock, open } = testClients()
    const [a, b] = [await open('a'), await open('b')]
    const pool = a.leasehold.pool('p', gpus(5))
    await pool.status()
    a.link.fault = (call) => (call === 'read' ? { back: 100 } : undefined)
    const seen: number[] = []
    const stop = pool.watch(({ resources }) => {
      seen.push(resources.filter(({ free }) => free === 0).length)
    })
    await clock.advance(10)
    for (let at = 0; at < 5; at++) await b.leasehold.pool('p').take({ tenant: 't' })
    await clock.advance(1000)
    expect(seen.at(-1)).toBe(5)
    expect(seen.length).toBeLessThanOrEqual(3)
    const count = seen.length
    await b.leasehold.pool('p').redefine(gpus(6))
    await clock.advance(10)
    stop()
    await clock.advance(1000)
    expect(seen).toHaveLength(count)
  })

  it('causes no warning if the client is closed', async () => {
    const { clock, open } = testClients()
    const { leasehold, link, events } = await open('a')
    const pool = leasehold.pool('p', gpus(1))
    await pool.status()
    link.fault = (call) => (call === 'read' ? { back: 100 } : undefined)
    pool.watch(() => {})
    await clock.advance(10)
    void leasehold.close()
    await clock.advance(1000)
    expect(events).toMatchObject([{ event: 'watch', level: 'debug' }])
  })

  it('is delivered now and after every change, until it is stopped', async () => {
    const { clock, open } = testClients()
    const { leasehold, link, events } = await open('a')
    const pool = leasehold.pool('p', gpus(1))
    const seen: number[] = []
    const stop = pool.watch(({ resources }: PoolStatus) => seen.push(resources[0]!.free))
    await clock.settle()
    expect(seen.at(-1)).toBe(1)
    const permit = await pool.take({ tenant: 't' })
    await clock.settle()
    expect(seen.at(-1)).toBe(0)
    link.fault = failing('read')
    await permit.release()
    await clock.settle()
    expect(seen.at(-1)).toBe(0)
    expect(events.at(-1)).toMatchObject({
      recipe: 'pool',
      event: 'watch',
      key: 'pool/p/',
      level: 'warn',
    })
    link.fault = () => undefined
    await pool.take({ tenant: 't' })
    await clock.settle()
    expect(seen.at(-1)).toBe(0)
    stop()
    const count = seen.length
    await pool.redefine(gpus(2))
    await clock.settle()
    expect(seen).toHaveLength(count)
  })
})
