import { describe, expect, it, vi } from 'vitest'
import { Client } from '../../../src/client/index.ts'
import { AdaptiveTtl, Leasehold } from '../../../src/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { FaultyStore } from '../../client/faulty-store.ts'

const DAY_MS = 86_400_000
const LEARNT = { ttl: 'adaptive', kind: 'report' } as const

async function scene(limits = {}) {
  const clock = new TestClock()
  const store = memoryStore({ clock, limits })
  const open = async (holder: string) => {
    const link = new FaultyStore(store, clock)
    const leasehold = await Leasehold.open(link, { clock, holder, callTimeout: 500 })
    const events: unknown[] = []
    leasehold.on('recipe-event', (event) => events.push(event))
    return { link, leasehold, events }
  }
  /** The stored value of the kind, as a learner. */
  const kept = async (kind = 'report') => {
    const { claims } = await store.read({ key: `adaptive/${kind}` })
    return AdaptiveTtl.fromText(claims[0]?.value, { kind })
  }
  return { clock, store, open, kept }
}

const holdsOf = async (leasehold: Leasehold, kind = 'report') =>
  (await leasehold.adaptive.explain(kind)).holds

async function work(leasehold: Leasehold, times: number) {
  for (let time = 0; time < times; time++) await leasehold.withLock('k', LEARNT, () => {})
}

describe('a frozen store', () => {
  it('ends a lock after its timeout, although what was learnt is read first', async () => {
    const { clock, open } = await scene()
    const { link, leasehold } = await open('a')
    link.freeze()
    const begin = clock.now()
    let ended: unknown
    leasehold.lock('k', { ...LEARNT, timeout: '1s' }).catch(({ code }) => {
      ended = { code, after: clock.now() - begin }
    })
    await clock.advance(30_000)
    expect(ended).toEqual({ code: 'timeout', after: 1000 })
  })
})

const FAILED = { recipe: 'adaptive', event: 'failed', key: 'adaptive/report', level: 'warn' }

describe('what a hold teaches', () => {
  it('is how long it was held', async () => {
    const { clock, open } = await scene()
    const { leasehold } = await open('a')
    for (let time = 0; time < 8; time++) {
      const lock = await leasehold.lock('k', LEARNT)
      await clock.advance(60_000)
      await lock.release()
    }
    expect((await leasehold.adaptive.explain('report')).why).toContain('lasted at most 60 s')
  })

  it('is learnt once for each hold, also of several keys and of several kinds', async () => {
    const { open } = await scene()
    const { leasehold } = await open('a')
    const both = await leasehold.lock(['x', 'y'], LEARNT)
    const other = await leasehold.lock('z', { ttl: 'adaptive', kind: 'export' })
    expect(await holdsOf(leasehold)).toBe(0)
    await both.release()
    expect([await holdsOf(leasehold), await holdsOf(leasehold, 'export')]).toEqual([1, 0])
    await other.release()
    expect([await holdsOf(leasehold), await holdsOf(leasehold, 'export')]).toEqual([1, 1])
  })

  it('needs one listener for each end, however many holds there are', async () => {
    const { open } = await scene()
    const { leasehold } = await open('a')
    const on = vi.spyOn(Client.prototype, 'on')
    await work(leasehold, 3)
    const listeners = on.mock.calls.map(([event]) => event)
    on.mockRestore()
    expect(listeners).toEqual(['released', 'closed', 'lost'])
  })

  it('is nothing for locks without an adaptive ttl', async () => {
    const { open } = await scene()
    const { leasehold } = await open('a')
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
    await work(leasehold, 1)
    await leasehold.withLock('k', () => {})
    expect(await holdsOf(leasehold)).toBe(1)
    const warnings = warn.mock.calls.length
    warn.mockRestore()
    expect(warnings).toBe(0)
  })

  it('is that its ttl was too short, if the holder survived a stall', async () => {
    const { clock, open } = await scene()
    const { leasehold } = await open('a')
    const lock = await leasehold.lock(['x', 'y'], LEARNT)
    clock.stall(60_000)
    await clock.advance(0)
    expect(lock.state).toBe('lost')
    const choice = await leasehold.adaptive.explain('report')
    expect(choice.holds).toBe(1)
    expect(choice.ttl).toBeGreaterThan(55_000)
  })

  it('is that its ttl was too short, if the holder survived an outage', async () => {
    const { clock, open } = await scene()
    const { leasehold, link } = await open('a')
    await leasehold.lock('k', LEARNT)
    link.freeze()
    await clock.advance(60_000)
    expect((await leasehold.adaptive.explain('report')).ttl).toBeGreaterThan(55_000)
  })

  it('is nothing about the ttl, if the lease was revoked', async () => {
    const { clock, store, open } = await scene()
    const { leasehold } = await open('a')
    await leasehold.lock('k', LEARNT)
    await store.revoke({ target: { key: 'k' } })
    await clock.settle()
    expect(await leasehold.adaptive.explain('report')).toMatchObject({ holds: 1, ttl: 30_000 })
  })
})

describe('the names of kinds', () => {
  it('may have 100 characters of any script, and be 256', async () => {
    const { open } = await scene()
    const { leasehold } = await open('a')
    const { adaptive } = leasehold
    await adaptive.explain(`${'ä/ '.repeat(33)}x`)
    await expect(adaptive.explain('x'.repeat(101))).rejects.toMatchObject({
      code: 'invalid-argument',
    })
    for (let n = 1; n < 256; n++) await adaptive.explain(`kind-${n}`)
    await expect(adaptive.explain('one more')).rejects.toMatchObject({ code: 'limit-exceeded' })
    expect(await holdsOf(leasehold, 'kind-7')).toBe(0)
  })

  it('are read from the store once', async () => {
    const { open } = await scene()
    const { leasehold, link } = await open('a')
    await Promise.all([leasehold.adaptive.explain('a'), leasehold.adaptive.explain('a')])
    await leasehold.adaptive.explain('a')
    expect(link.count('read')).toBe(1)
  })
})

describe('what was learnt', () => {
  it('is kept for 90 days after it was last written, without its writer', async () => {
    const { clock, store, open, kept } = await scene()
    const { leasehold } = await open('a')
    await work(leasehold, 1)
    await leasehold.close()
    await clock.advance(80 * DAY_MS)
    const later = await open('b')
    await work(later.leasehold, 1)
    await later.leasehold.close()
    await clock.advance(80 * DAY_MS)
    expect((await kept()).seen).toBe(2)
    await clock.advance(10 * DAY_MS)
    expect((await store.read({ prefix: 'adaptive/' })).keys).toEqual([])
  })

  it('is kept for as long as the store can, if that is shorter', async () => {
    const { store, open } = await scene({ ttlMax: 3_600_000 })
    const { leasehold } = await open('a')
    await work(leasehold, 1)
    await leasehold.close()
    const { claims } = await store.read({ key: 'adaptive/report' })
    const { lease } = await store.read({ lease: claims[0]!.lease })
    expect(lease!.ttl).toBe(3_600_000)
  })

  it('is written ten seconds after the first hold that is not written', async () => {
    const { clock, open, kept } = await scene()
    const { leasehold } = await open('a')
    await work(leasehold, 1)
    await clock.advance(9999)
    expect((await kept()).seen).toBe(0)
    await clock.advance(1)
    expect((await kept()).seen).toBe(1)
    expect(leasehold.adaptive.unwritten).toBe(false)
  })

  it('is written at once by a flush, and not again by the timer', async () => {
    const { clock, open, kept } = await scene()
    const { leasehold, link } = await open('a')
    await leasehold.adaptive.explain('nothing new')
    await work(leasehold, 1)
    expect(leasehold.adaptive.unwritten).toBe(true)
    await leasehold.adaptive.flush()
    expect(leasehold.adaptive.unwritten).toBe(false)
    expect((await kept()).seen).toBe(1)
    const before = link.count('read')
    await leasehold.adaptive.flush()
    await clock.advance(20_000)
    expect(link.count('read')).toBe(before)
  })

  it('by others is known after the next write', async () => {
    const { clock, open } = await scene()
    const [a, b] = [await open('a'), await open('b')]
    await work(a.leasehold, 1)
    await work(b.leasehold, 2)
    await clock.advance(11_000)
    await work(a.leasehold, 1)
    expect(await holdsOf(a.leasehold)).toBe(2)
    await clock.advance(11_000)
    expect(await holdsOf(a.leasehold)).toBe(4)
  })

  it('is complete although holds end during the write', async () => {
    const { clock, open, kept } = await scene()
    const { leasehold, link } = await open('a')
    await work(leasehold, 1)
    link.fault = (call) => (call === 'read' ? { there: 100 } : undefined)
    const flushed = leasehold.adaptive.flush()
    const worked = work(leasehold, 1)
    await clock.advance(1000)
    await Promise.all([flushed, worked])
    expect((await kept()).seen).toBe(1)
    expect(await holdsOf(leasehold)).toBe(2)
    await clock.advance(11_000)
    expect((await kept()).seen).toBe(2)
    expect(await holdsOf(leasehold)).toBe(2)
  })

  it('is not lost if another process writes the first entry in the same moment', async () => {
    const { clock, store, open, kept } = await scene()
    const [a, b] = [await open('a'), await open('b')]
    await work(a.leasehold, 2)
    await work(b.leasehold, 1)
    // b writes between the read of a, which finds nothing, and the write of a.
    a.link.fault = (call) => (call === 'grant' ? { there: 400 } : undefined)
    const flushed = a.leasehold.adaptive.flush()
    await clock.advance(100)
    await b.leasehold.adaptive.flush()
    await clock.advance(1000)
    await flushed
    // If two write at the same moment, the last write stays.
    expect((await kept()).seen).toBe(2)
    expect((await store.read({ key: 'adaptive/report' })).count).toBe(1)
    expect([...a.events, ...b.events]).toEqual([])
  })
})

describe('without the store', () => {
  it('learning starts from nothing and reports it', async () => {
    const { clock, open } = await scene()
    const { leasehold, link, events } = await open('a')
    link.fault = (call) => (call === 'read' ? { error: new Error('broken') } : undefined)
    const choice = leasehold.adaptive.explain('report')
    await clock.advance(10_000)
    expect(await choice).toMatchObject({ ttl: 30_000, holds: 0 })
    expect(events).toEqual([{ ...FAILED, detail: expect.stringContaining('broken') }])
  })

  it('observations are kept, reported and included in the next write', async () => {
    const { clock, open, kept } = await scene()
    const { leasehold, link, events } = await open('a')
    await work(leasehold, 1)
    link.fault = (call) => (call === 'read' ? { error: new Error('broken') } : undefined)
    await clock.advance(20_000)
    expect(events).toEqual([{ ...FAILED, detail: expect.stringContaining('broken') }])
    expect(leasehold.adaptive.unwritten).toBe(true)
    expect(await holdsOf(leasehold)).toBe(1)
    link.fault = () => undefined
    await work(leasehold, 1)
    await clock.advance(11_000)
    expect((await kept()).seen).toBe(2)
    expect(await holdsOf(leasehold)).toBe(2)
  })

  it('observations from before and during a failed write are kept', async () => {
    const { clock, open, kept } = await scene()
    const { leasehold, link } = await open('a')
    await work(leasehold, 1)
    link.fault = (call) => (call === 'read' ? { lost: 'request' } : undefined)
    const flushed = leasehold.adaptive.flush()
    await work(leasehold, 1)
    await clock.advance(9000)
    await flushed
    link.fault = () => undefined
    await clock.advance(11_000)
    expect((await kept()).seen).toBe(2)
  })

  it('a closed client fails instead of starting from nothing', async () => {
    const { open } = await scene()
    const { leasehold, events } = await open('a')
    await leasehold.close()
    await expect(leasehold.adaptive.explain('report')).rejects.toMatchObject({ code: 'closed' })
    expect(events).toEqual([])
  })

  it('a closed client does not report what it cannot write', async () => {
    const { open } = await scene()
    const { leasehold, events } = await open('a')
    const lock = await leasehold.lock('k', LEARNT)
    await leasehold.close()
    expect(lock.state).toBe('lost')
    await leasehold.adaptive.flush()
    expect(events).toEqual([])
  })
})

it('damaged memory is replaced and reported', async () => {
  const { store, open, kept } = await scene()
  const { leasehold, events } = await open('a')
  const claims = [{ key: 'adaptive/report', value: 'nonsense' }]
  await store.grant({ holder: 'x', ttl: DAY_MS, claims })
  expect(await holdsOf(leasehold)).toBe(0)
  expect(events).toEqual([{ ...FAILED, detail: expect.stringContaining('"report"') }])
  await work(leasehold, 1)
  await leasehold.adaptive.flush()
  expect((await kept()).seen).toBe(1)
})
