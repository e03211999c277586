import { describe, expect, it } from 'vitest'
import { failing, gpus, testClients } from './clients.ts'

const HOUR = 3600_000

/** A little less: a holder keeps a safety margin for its clock. */
function expectAbout(ms: number, expected: number): void {
  expect(ms).toBeLessThanOrEqual(expected)
  expect(ms).toBeGreaterThan(0.95 * expected)
}

describe('a permit', () => {
  it('describes itself, and is reported', async () => {
    const { clock, open } = testClients()
    const { leasehold, events } = await open('a')
    const resources = [{ name: 'big', shares: 2 }, { name: 'small' }]
    const pool = leasehold.pool('p', { resources })
    const permit = await pool.take({ tenant: 't', kind: 'train', count: 2, ttl: '1h' })
    expect(permit).toMatchObject({
      resource: 'big',
      resources: ['big', 'small'],
      keys: ['pool/p/r/big/0', 'pool/p/r/big/1', 'pool/p/r/small'],
      tenant: 't',
      kind: 'train',
      state: 'held',
      held: true,
    })
    expect(permit.token).toBe(permit.claimToken)
    expect(permit.lease).toEqual(expect.any(String))
    expect(permit.notice.aborted).toBe(false)
    expectAbout(permit.remaining(), HOUR)
    permit.assertHeld()
    expect(events).toMatchObject([
      {
        recipe: 'pool',
        event: 'taken',
        key: 'pool/p/r/big/0',
        token: permit.claimToken,
        detail: 't has big, small for train',
      },
    ])
    await clock.advance(HOUR / 2)
    expectAbout(permit.remaining(), HOUR / 2)
    await permit.release()
    await permit.release()
    expect([permit.state, permit.held]).toEqual(['released', false])
    expect(() => permit.assertHeld()).toThrow()
    expect(() => permit.token).toThrow()
  })

  it('that is extended is booked for its whole ttl again', async () => {
    const { clock, store, open, records } = testClients()
    const { leasehold, link } = await open('a')
    const resources = [{ name: 'gpu', shares: 2 }]
    const permit = await leasehold.pool('p', { resources }).take({ tenant: 't', ttl: '1h' })
    await clock.advance(HOUR / 2)
    await permit.extend()
    expectAbout(permit.remaining(), HOUR)
    await clock.settle()
    for (const key of permit.keys) {
      const { claims } = await store.read({ key })
      expect(JSON.parse(claims[0]!.value!)).toMatchObject({ tenant: 't', booked: 1.5 * HOUR })
    }
    expect((await records())[0]!.open).toMatchObject([
      { token: permit.claimToken, booked: 1.5 * HOUR },
    ])
    await permit.release()
    const kept = await leasehold.pool('p').take({ tenant: 't', strategy: 'lock' })
    await clock.settle()
    const before = link.calls.length
    await kept.extend()
    expect(link.calls.slice(before)).toEqual(['renew'])
  })

  it('ends at the maxHold of its pool, extended or not', async () => {
    const { clock, open } = testClients()
    const { leasehold } = await open('a')
    const pool = leasehold.pool('p', gpus(2, { maxHold: '1h' }))
    const long = await pool.take({ tenant: 't', ttl: '5h' })
    expectAbout(long.remaining(), HOUR)
    const short = await pool.take({ tenant: 't', ttl: '40m' })
    await clock.advance(HOUR / 2)
    await short.extend()
    await clock.advance(HOUR / 2 - 60_000)
    expect([long.held, short.held]).toEqual([true, true])
    await clock.advance(60_000)
    expect([long.held, short.held]).toEqual([false, false])
  })

  it('with a grace lapses in an outage, and can be returned afterwards', async () => {
    const { clock, store, open, records } = testClients()
    const { leasehold, link } = await open('a')
    const options = { tenant: 't', kind: 'k', strategy: 'lock', ttl: '2s', grace: '1m' } as const
    const permit = await leasehold.pool('p', gpus(1)).take(options)
    await clock.advance(1000)
    link.freeze()
    await clock.advance(5000)
    expect(permit.state).toBe('lapsed')
    link.thaw()
    const released = permit.release()
    await clock.advance(5000)
    await released
    expect((await store.read({ key: 'pool/p/r/gpu-0' })).count).toBe(0)
    const [record] = await records()
    expect([record!.open, Object.keys(record!.accounts)]).toEqual([[], ['t']])
  })

  it('is returned at the end of a block', async () => {
    const { store, open, records } = testClients()
    const { leasehold } = await open('a')
    {
      await using permit = await leasehold.pool('p', gpus(1)).take({ tenant: 't' })
      expect(permit.held).toBe(true)
    }
    expect((await store.read({ key: 'pool/p/r/gpu-0' })).count).toBe(0)
    expect((await records())[0]!.open).toEqual([])
  })
})

describe('usage records', () => {
  it('list open permits, and usage before a returned resource is free', async () => {
    const { clock, open, records } = testClients()
    const { leasehold, link } = await open('a')
    const resources = [{ name: 'gpu', shares: 4 }]
    const pool = leasehold.pool('p', { resources })
    const permit = await pool.take({ tenant: 't', kind: 'k', shares: 2, ttl: '1h' })
    const since = clock.now()
    await clock.settle()
    const { claimToken: token } = permit
    expect(await records()).toEqual([
      { accounts: {}, kinds: {}, open: [{ token, tenant: 't', cost: 0.5, since, booked: HOUR }] },
    ])
    await clock.advance(60_000)
    const before = link.calls.length
    await permit.release()
    expect(link.calls.slice(before, before + 3)).toEqual(['update', 'renew', 'release'])
    const [record] = await records()
    expect(record!.open).toEqual([])
    expect(record!.accounts['t']!.at).toBe(since + 60_000)
    expect(record!.accounts['t']!.used / 30_000).toBeCloseTo(1, 2)
    expect(Object.keys(record!.kinds)).toEqual(['k'])
  })

  it.each([
    ['revoked', false],
    ['expired', true],
  ] as const)('learn from what was %s: %s', async (how, learns) => {
    const { clock, store, open, records } = testClients()
    const { leasehold } = await open('a')
    const permit = await leasehold.pool('p', gpus(1)).take({ tenant: 't', kind: 'k', ttl: '1m' })
    await clock.advance(1000)
    if (how === 'revoked') await store.revoke({ target: { key: permit.keys[0]! } })
    else await clock.advance(120_000)
    await clock.advance(1000)
    expect(permit.held).toBe(false)
    const [record] = await records()
    expect(Object.keys(record!.accounts)).toEqual(['t'])
    expect(Object.keys(record!.kinds)).toEqual(learns ? ['k'] : [])
  })

  it('that cannot be written are reported, and included in the next write', async () => {
    const { clock, open, records } = testClients()
    const { leasehold, link, events } = await open('a')
    const pool = leasehold.pool('p', gpus(1))
    const first = await pool.take({ tenant: 'x', kind: 'one' })
    await clock.advance(1000)
    link.fault = failing('update')
    await first.release()
    expect(events.at(-1)).toMatchObject({
      recipe: 'pool',
      event: 'usage-record',
      key: 'pool/p/books',
      level: 'warn',
    })
    link.fault = () => undefined
    expect(Object.keys((await records())[0]!.accounts)).toEqual([])
    const second = await pool.take({ tenant: 'y', kind: 'two' })
    await clock.advance(1000)
    await second.release()
    const [record] = await records()
    expect(Object.keys(record!.accounts).sort()).toEqual(['x', 'y'])
    expect(Object.keys(record!.kinds).sort()).toEqual(['one', 'two'])
  })

  it('are started again after a merge, without the merged usage', async () => {
    const { clock, store, open, records } = testClients()
    const { leasehold, events } = await open('a')
    const pool = leasehold.pool('p', gpus(1))
    const use = async (tenant: string) => {
      const permit = await pool.take({ tenant })
      await clock.advance(1000)
      await permit.release()
    }
    await use('x')
    const { claims } = await store.read({ key: 'pool/p/books' })
    await store.revoke({ target: { lease: claims[0]!.lease } })
    await use('y')
    expect((await records()).map(({ accounts }) => Object.keys(accounts))).toEqual([['y']])
    expect(events.filter(({ event }) => event === 'usage-record')).toEqual([])
  })

  it('cause no warning when the client is closed', async () => {
    const { clock, open } = testClients()
    const { leasehold, events } = await open('a')
    await leasehold.pool('p', gpus(1)).take({ tenant: 'x' })
    await clock.settle()
    await leasehold.close()
    await clock.advance(1000)
    expect(events.filter(({ level }) => level === 'warn')).toEqual([])
  })
})
