import { describe, expect, it } from 'vitest'
import { gpus, testClients } from './clients.ts'

const caught = (error: unknown) => error

describe('a preempted permit', () => {
  it('is reported, and revoked when the period is over, also after an outage', async () => {
    const { clock, store, open } = testClients()
    const [a, b] = [await open('a'), await open('b')]
    const pool = a.leasehold.pool('p', gpus(1, { notice: '10s' }))
    const low = await pool.take({ tenant: 'x', preemptible: true, priority: 1 })
    const urgent = b.leasehold.pool('p').take({ tenant: 'x', priority: 3 })
    await clock.advance(100)
    const key = `pool/p/notice/${low.claimToken}`
    expect(b.events).toMatchObject([
      {
        recipe: 'pool',
        event: 'notice',
        key,
        token: low.claimToken,
        detail: 'x (priority 3) preempts a permit of a',
      },
    ])
    expect(low.notice.reason).toEqual({ by: 'b', tenant: 'x', priority: 3, period: 10_000 })
    const [notice] = (await store.read({ key })).claims
    expect(JSON.parse(notice!.value!)).toMatchObject({ permit: low.claimToken, keys: low.keys })
    b.link.fault = (call) => (call === 'revoke' ? { error: new Error('broken') } : undefined)
    await clock.advance(12_000)
    expect(low.held).toBe(true)
    b.link.fault = () => undefined
    await clock.advance(5000)
    expect(low.held).toBe(false)
    expect((await urgent).held).toBe(true)
    await clock.advance(100)
    expect((await store.read({ key })).count).toBe(0)
  })

  it('is preempted again if the store did not answer', async () => {
    const { clock, open } = testClients()
    const [a, b] = [await open('a'), await open('b')]
    const pool = a.leasehold.pool('p', gpus(1))
    const low = await pool.take({ tenant: 'x', preemptible: true })
    const theirs = b.leasehold.pool('p')
    await theirs.status()
    b.leasehold.pool('p').take({ tenant: 'x', priority: 3 }).catch(caught)
    b.link.fault = (call) =>
      call === 'claim' || call === 'grant' ? { there: 100, error: new Error('broken') } : undefined
    await clock.advance(3000)
    expect(low.notice.aborted).toBe(false)
    b.link.fault = () => undefined
    await clock.advance(10_000)
    expect(low.notice.aborted).toBe(true)
  })

  it('gets no notice if it was already returned', async () => {
    const { clock, open } = testClients()
    const [a, b] = [await open('a'), await open('b')]
    const low = await a.leasehold.pool('p', gpus(1)).take({ tenant: 'x', preemptible: true })
    const urgent = b.leasehold.pool('p').take({ tenant: 'x', priority: 3 })
    await low.release()
    await clock.advance(1000)
    expect(low.notice.aborted).toBe(false)
    expect((await urgent).held).toBe(true)
  })
})

describe('a preempted permit that', () => {
  /** One of two permits of x is preempted for y. */
  async function noticed() {
    const made = testClients()
    const [a, b] = [await made.open('a'), await made.open('b')]
    const pool = a.leasehold.pool('p', gpus(2, { notice: '1h' }))
    const used = await pool.take({ tenant: 'y' })
    await made.clock.advance(60_000)
    await used.release()
    await pool.take({ tenant: 'x' })
    const low = await pool.take({ tenant: 'x', preemptible: true })
    const urgent = b.leasehold.pool('p').take({ tenant: 'y', priority: 5 })
    urgent.catch(caught)
    await made.clock.advance(100)
    expect(low.notice.aborted).toBe(true)
    const notices = async () => (await made.store.read({ prefix: 'pool/p/notice/' })).keys.length
    return { ...made, a, b, pool, low, urgent, notices }
  }

  it('a new definition guarantees to its tenant stays with it', async () => {
    const { clock, pool, low, notices } = await noticed()
    expect(await notices()).toBe(1)
    const tenants = { x: { weight: 9 }, y: { weight: 1 } }
    await pool.redefine(gpus(2, { notice: '1h', tenants }))
    await clock.advance(1000)
    expect([await notices(), low.held]).toEqual([0, true])
  })

  it('is returned goes to the request that asked, however slow it is', async () => {
    const { clock, open, b, low, urgent } = await noticed()
    const c = await open('c')
    let hasTaken = false
    // Ahead of the other in the queue: its tenant has used nothing.
    const other = c.leasehold.pool('p').take({ tenant: 'z' })
    void other.then(() => (hasTaken = true), caught)
    await clock.advance(100)
    b.link.fault = (call) => (call === 'grant' || call === 'claim' ? { there: 500 } : undefined)
    await low.release()
    await clock.advance(5000)
    expect((await urgent).resource).toBe(low.resource)
    expect(hasTaken).toBe(false)
  })
})
