import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { Client } from '../../src/client/index.ts'
import { LeaseholdError, type Permit, type PoolStatus } from '../../src/index.ts'
import { requestOf } from '../../src/recipes/pool/request.ts'
import { Waiting } from '../../src/recipes/pool/waiting.ts'
import { failing, gpus, place } from './pool-place.ts'

const HOUR = 3600_000
const DAY = 24 * HOUR

const caught = (error: unknown) => error

describe('a try', () => {
  it('takes what is free, and gives it back at the end of its block', async () => {
    const { store, open } = place()
    const { leasehold } = await open('a')
    const pool = leasehold.pool('p', gpus(1))
    {
      await using tried = await pool.tryTake({ tenant: 't' })
      expect([tried.permit!.held, tried.why]).toEqual([true, undefined])
    }
    expect((await store.read({ key: 'pool/p/r/gpu-0' })).count).toBe(0)
  })

  it('says why there is nothing also if its ttl is left to what was learnt', async () => {
    const { open } = place()
    const { leasehold } = await open('a')
    const pool = leasehold.pool('p', gpus(1))
    await pool.take({ tenant: 'x' })
    const tried = await pool.tryTake({ tenant: 'x', kind: 'k', ttl: 'adaptive' })
    expect(tried.why).toMatch(/nothing that suits is free now/)
  })

  it('says how many come before where nothing is free, and changes nothing', async () => {
    const { clock, store, open } = place()
    const { leasehold } = await open('a')
    const pool = leasehold.pool('p', gpus(1))
    await pool.take({ tenant: 'x' })
    pool.take({ tenant: 'x' }).catch(caught)
    await clock.settle()
    await using tried = await pool.tryTake({ tenant: 'x' })
    expect(tried.permit).toBeUndefined()
    expect(tried.why).toMatch(/nothing that suits is free now, and 1 in line/)
    expect((await store.read({ key: 'pool/p/line' })).count).toBe(1)
  })

  it('knows of what was returned elsewhere, also where no news came', async () => {
    const { clock, open } = place()
    const [a, b] = [await open('a'), await open('b')]
    const held = await a.leasehold.pool('p', gpus(1)).take({ tenant: 'x' })
    const pool = b.leasehold.pool('p')
    expect((await pool.tryTake({ tenant: 'x' })).permit).toBeUndefined()
    b.line.interrupt()
    await held.release()
    expect((await pool.tryTake({ tenant: 'x' })).permit?.held).toBe(true)
    await clock.advance(10_000)
  })

  it('says who was faster', async () => {
    const { clock, store, open } = place()
    const { leasehold, line } = await open('a')
    const pool = leasehold.pool('p', gpus(1))
    await pool.status()
    line.fault = (call) => (call === 'grant' ? { there: 100 } : undefined)
    const trying = pool.tryTake({ tenant: 'x' })
    await clock.advance(50)
    const claims = [{ key: 'pool/p/r/gpu-0' }]
    await store.grant({ holder: 'fast', ttl: HOUR, claims })
    await clock.advance(100)
    expect(await trying).toMatchObject({
      permit: undefined,
      why: 'pool/p/r/gpu-0 was just taken by fast',
    })
  })
})

describe('a wait', () => {
  async function waiting(options: object) {
    const made = place()
    const { leasehold, line } = await made.open('a')
    const pool = leasehold.pool('p', gpus(1))
    const held = await pool.take({ tenant: 'x', ttl: 'infinite' })
    let outcome: unknown
    const wait = pool.take({ tenant: 'y', ...options })
    const ended = wait.then(
      (permit) => (outcome = permit),
      (error) => (outcome = error),
    )
    await made.clock.settle()
    const inLine = async () => (await made.store.read({ key: 'pool/p/line' })).count
    return { ...made, leasehold, line, pool, held, ended, inLine, outcome: () => outcome }
  }

  it('ends when its time is over', async () => {
    const { clock, outcome, inLine } = await waiting({ wait: '1m' })
    await clock.advance(59_999)
    expect(outcome()).toBeUndefined()
    expect(await inLine()).toBe(1)
    await clock.advance(1)
    expect(outcome()).toMatchObject({ code: 'timeout' })
    expect(await inLine()).toBe(0)
  })

  it('may be for days', async () => {
    const { clock, store } = place()
    const room = { client: new Client(store, { clock }), name: 'p', left: () => {} }
    const request = requestOf({ tenant: 't', wait: '3d' })
    let outcome: unknown
    new Waiting(room as never, request).outcome.catch((error: unknown) => {
      outcome = error
    })
    await clock.advance(3 * DAY - 1)
    expect(outcome).toBeUndefined()
    await clock.advance(1)
    expect(outcome).toMatchObject({ code: 'timeout' })
  })

  it('ends with its signal and the reason of it, and leaves nothing behind there', async () => {
    const stop = new AbortController()
    const { clock, outcome, inLine, pool, held } = await waiting({ signal: stop.signal })
    stop.abort('enough')
    await clock.settle()
    expect(outcome()).toMatchObject({ code: 'aborted', cause: 'enough' })
    expect(await inLine()).toBe(0)
    const other = new AbortController()
    const served = pool.take({ tenant: 'y', signal: other.signal })
    await clock.settle()
    await held.release()
    expect((await served).held).toBe(true)
    expect(getEventListeners(other.signal, 'abort')).toEqual([])
    const late = pool.take({ tenant: 'y', signal: AbortSignal.abort('before') })
    await expect(late).rejects.toMatchObject({ code: 'aborted', cause: 'before' })
    await clock.settle()
    expect(await inLine()).toBe(0)
  })

  it('ends with its client', async () => {
    const { leasehold, ended, outcome } = await waiting({})
    await leasehold.close()
    await ended
    expect(outcome()).toMatchObject({
      code: 'closed',
      message: expect.stringMatching(/"y" waited/),
    })
  })

  it('ends where its place is taken away by force, and says by whom', async () => {
    const { clock, store, outcome } = await waiting({})
    await store.revoke({ target: { key: 'pool/p/line' }, by: 'ada', why: 'cleaning' })
    await clock.advance(100)
    expect(outcome()).toMatchObject({ code: 'lost', reason: 'revoked', by: 'ada' })
  })

  it('goes on where nobody knows whether it is in line', async () => {
    const made = place()
    const { leasehold, line } = await made.open('a')
    const pool = leasehold.pool('p', gpus(1))
    await pool.status()
    line.fault = (call) => (call === 'grant' ? { lost: 'request' } : undefined)
    const wait = pool.take({ tenant: 'y' })
    await made.clock.advance(5000)
    line.fault = () => undefined
    await made.clock.advance(10_000)
    expect((await wait).held).toBe(true)
    expect((await made.store.read({ key: 'pool/p/line' })).count).toBe(0)
  })

  it('fails where the store refuses it', async () => {
    const made = place()
    const { leasehold, line } = await made.open('a')
    const pool = leasehold.pool('p', gpus(1))
    await pool.status()
    line.fault = failing('grant')
    await expect(pool.take({ tenant: 'y' })).rejects.toMatchObject({ code: 'storage-full' })
  })
})

describe('a pool that may not be read', () => {
  it('is refused, and works when it may', async () => {
    const { open } = place()
    const { leasehold, line } = await open('a')
    const error = new LeaseholdError('forbidden', 'not here')
    line.fault = (call) => (call === 'read' ? { error } : undefined)
    const pool = leasehold.pool('p', gpus(1))
    await expect(pool.take({ tenant: 'x' })).rejects.toMatchObject({ code: 'forbidden' })
    await expect(pool.status()).rejects.toMatchObject({ code: 'forbidden' })
    line.fault = () => undefined
    expect((await pool.take({ tenant: 'x' })).held).toBe(true)
  })
})

describe('the definition', () => {
  it('is one for a process: another is refused, the same is not', async () => {
    const { open } = place()
    const { leasehold } = await open('a')
    const pool = leasehold.pool('p', gpus(1))
    expect(leasehold.pool('p', gpus(1))).toBe(pool)
    expect(() => leasehold.pool('p', gpus(2))).toThrow(/already defined otherwise/)
    expect(() => leasehold.pool('a/b')).toThrow(/^the pool's name is "a\/b"/)
  })

  it('can be brought after the pool was asked for without one', async () => {
    const { open } = place()
    const { leasehold } = await open('a')
    const pool = leasehold.pool('p')
    await expect(pool.take({ tenant: 'x' })).rejects.toThrow(/"p" is not defined/)
    leasehold.pool('p', gpus(1))
    expect((await pool.take({ tenant: 'x' })).held).toBe(true)
  })

  it('that could not be published is published with the next use', async () => {
    const { open } = place()
    const { leasehold, line } = await open('a')
    line.fault = failing('grant')
    const pool = leasehold.pool('p', gpus(1))
    await expect(pool.take({ tenant: 'x' })).rejects.toMatchObject({ code: 'storage-full' })
    line.fault = () => undefined
    expect((await pool.take({ tenant: 'x' })).held).toBe(true)
  })

  it('is the last one where it is defined anew, for all and for good', async () => {
    const { clock, store, open } = place()
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
    const { clock, open } = place()
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
    expect(status.line).toEqual([
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

  it('is shown of more than one page of keys', async () => {
    const { open } = place()
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

  it('costs one reading, whatever else is in the store', async () => {
    const { clock, store, open } = place()
    // More than a page of keys.
    for (let at = 0; at < 12; at++) {
      const claims = Array.from({ length: 100 }, (_, key) => ({ key: `other/${at}/${key}` }))
      await store.grant({ holder: 'x', ttl: HOUR, claims })
    }
    const { leasehold, line } = await open('a')
    const pool = leasehold.pool('p', gpus(2))
    await pool.take({ tenant: 't' })
    await clock.settle()
    const before = line.calls.length
    await pool.status()
    expect(line.calls.slice(before)).toEqual(['read'])
  })

  it('is told one at a time, the last one with all changes, and to nobody who has stopped', async () => {
    const { clock, open } = place()
    const [a, b] = [await open('a'), await open('b')]
    const pool = a.leasehold.pool('p', gpus(5))
    await pool.status()
    a.line.fault = (call) => (call === 'read' ? { back: 100 } : undefined)
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

  it('is no warning to one whose client is closed', async () => {
    const { clock, open } = place()
    const { leasehold, line, news } = await open('a')
    const pool = leasehold.pool('p', gpus(1))
    await pool.status()
    line.fault = (call) => (call === 'read' ? { back: 100 } : undefined)
    pool.watch(() => {})
    await clock.advance(10)
    void leasehold.close()
    await clock.advance(1000)
    expect(news).toMatchObject([{ event: 'watch', level: 'debug' }])
  })

  it('is told now and after every change, until nobody listens', async () => {
    const { clock, open } = place()
    const { leasehold, line, news } = await open('a')
    const pool = leasehold.pool('p', gpus(1))
    const seen: number[] = []
    const stop = pool.watch(({ resources }: PoolStatus) => seen.push(resources[0]!.free))
    await clock.settle()
    expect(seen.at(-1)).toBe(1)
    const permit = await pool.take({ tenant: 't' })
    await clock.settle()
    expect(seen.at(-1)).toBe(0)
    line.fault = failing('read')
    await permit.release()
    await clock.settle()
    expect(seen.at(-1)).toBe(0)
    expect(news.at(-1)).toMatchObject({
      recipe: 'pool',
      event: 'watch',
      key: 'pool/p/',
      level: 'warn',
    })
    line.fault = () => undefined
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

describe('what is asked back', () => {
  it('is told in the log, and taken when the period is over, also after an outage', async () => {
    const { clock, store, open } = place()
    const [a, b] = [await open('a'), await open('b')]
    const pool = a.leasehold.pool('p', gpus(1, { notice: '10s' }))
    const low = await pool.take({ tenant: 'x', preemptible: true, priority: 1 })
    const urgent = b.leasehold.pool('p').take({ tenant: 'x', priority: 3 })
    await clock.advance(100)
    const key = `pool/p/notice/${low.claimToken}`
    expect(b.news).toMatchObject([
      {
        recipe: 'pool',
        event: 'notice',
        key,
        token: low.claimToken,
        detail: 'x (priority 3) asks a for it back',
      },
    ])
    expect(low.notice.reason).toEqual({ by: 'b', tenant: 'x', priority: 3, period: 10_000 })
    const [notice] = (await store.read({ key })).claims
    expect(JSON.parse(notice!.value!)).toMatchObject({ permit: low.claimToken, keys: low.keys })
    b.line.fault = (call) => (call === 'revoke' ? { error: new Error('broken') } : undefined)
    await clock.advance(12_000)
    expect(low.held).toBe(true)
    b.line.fault = () => undefined
    await clock.advance(5000)
    expect(low.held).toBe(false)
    expect((await urgent).held).toBe(true)
    await clock.advance(100)
    expect((await store.read({ key })).count).toBe(0)
  })

  it('is asked for again where the store did not answer', async () => {
    const { clock, open } = place()
    const [a, b] = [await open('a'), await open('b')]
    const pool = a.leasehold.pool('p', gpus(1))
    const low = await pool.take({ tenant: 'x', preemptible: true })
    const theirs = b.leasehold.pool('p')
    await theirs.status()
    b.leasehold.pool('p').take({ tenant: 'x', priority: 3 }).catch(caught)
    b.line.fault = (call) =>
      call === 'claim' || call === 'grant' ? { there: 100, error: new Error('broken') } : undefined
    await clock.advance(3000)
    expect(low.notice.aborted).toBe(false)
    b.line.fault = () => undefined
    await clock.advance(10_000)
    expect(low.notice.aborted).toBe(true)
  })

  it('is not told to one who has returned it already', async () => {
    const { clock, open } = place()
    const [a, b] = [await open('a'), await open('b')]
    const low = await a.leasehold.pool('p', gpus(1)).take({ tenant: 'x', preemptible: true })
    const urgent = b.leasehold.pool('p').take({ tenant: 'x', priority: 3 })
    await low.release()
    await clock.advance(1000)
    expect(low.notice.aborted).toBe(false)
    expect((await urgent).held).toBe(true)
  })
})

describe('what is asked back and', () => {
  /** One permit of two that x holds is asked back for y. */
  async function noticed() {
    const made = place()
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

  it('is guaranteed to its tenant by another definition stays there', async () => {
    const { clock, pool, low, notices } = await noticed()
    expect(await notices()).toBe(1)
    const tenants = { x: { weight: 9 }, y: { weight: 1 } }
    await pool.redefine(gpus(2, { notice: '1h', tenants }))
    await clock.advance(1000)
    expect([await notices(), low.held]).toEqual([0, true])
  })

  it('is returned is for the one who asked, however slow that is', async () => {
    const { clock, open, b, low, urgent } = await noticed()
    const c = await open('c')
    let hasTaken = false
    // Before the other in line: its tenant has used nothing.
    const other = c.leasehold.pool('p').take({ tenant: 'z' })
    void other.then(() => (hasTaken = true), caught)
    await clock.advance(100)
    b.line.fault = (call) => (call === 'grant' || call === 'claim' ? { there: 500 } : undefined)
    await low.release()
    await clock.advance(5000)
    expect((await urgent).resource).toBe(low.resource)
    expect(hasTaken).toBe(false)
  })
})

describe('the booking of one who waits', () => {
  it('is its ttl, or how long its kind is usually held if a heartbeat keeps it', async () => {
    const { clock, store, open } = place()
    const { leasehold } = await open('a')
    const pool = leasehold.pool('p', gpus(1))
    const booked = async (options: object) => {
      const permit = await pool.take({ tenant: 't', ...options })
      const { claims } = await store.read({ key: permit.keys[0]! })
      await clock.advance(60_000)
      await permit.release()
      await clock.settle()
      return (JSON.parse(claims[0]!.value!) as { booked: number }).booked
    }
    const kept = { kind: 'k', strategy: 'lock', ttl: '20s' }
    expect([await booked(kept), await booked(kept), await booked(kept)]).toEqual(
      Array(3).fill(20_000),
    )
    const learnt = await booked(kept)
    expect(Math.max(learnt / 60_000, 60_000 / learnt)).toBeLessThan(1.25)
    expect(await booked({ kind: 'k', ttl: '1h' })).toBe(HOUR)
  })
})
