import { describe, expect, it } from 'vitest'
import { isLeaseholdError, Leasehold, type SessionEvent } from '../../../src/index.ts'
import { isRenewalDue, newActivity, noteReading } from '../../../src/recipes/session/activity.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { FaultyStore } from '../../client/faulty-store.ts'

const MINUTE = 60_000
const TTL = 20 * MINUTE

/** Processes on one store, each with its own link that counts its calls. */
async function fleet(count: number, limits?: { events: number }) {
  const clock = new TestClock()
  const store = memoryStore(limits ? { clock, limits } : { clock })
  const links = Array.from({ length: count }, () => new FaultyStore(store, clock))
  const processes = await Promise.all(
    links.map((link, i) => Leasehold.open(link, { clock, holder: `p${i}`, callTimeout: 500 })),
  )
  const renewals = () => links.reduce((sum, link) => sum + link.count('renew'), 0)
  return { clock, store, links, processes, renewals }
}

it('a session without data has null, as in the table of recipes of the README', async () => {
  const { processes } = await fleet(2)
  const { id, data } = await processes[0]!.sessions().create({ user: 'ada' })
  expect(data).toBeNull()
  expect(await processes[1]!.sessions().get(id)).toMatchObject({ user: 'ada', data: null })
})

describe('a busy session', () => {
  it('costs one process at most one write in a tenth of its ttl', async () => {
    const { clock, links, processes, renewals } = await fleet(1)
    const session = await processes[0]!.sessions('main', { ttl: TTL }).create({ data: 1 })
    for (let i = 0; i < 2000; i++) {
      await session.touch()
      await clock.advance(TTL / 2000)
    }
    expect(renewals()).toBeGreaterThanOrEqual(8)
    expect(renewals()).toBeLessThanOrEqual(10)
    expect(links[0]!.count('update')).toBe(0)
  })

  it('costs several processes no more than one, except for one write each at first', async () => {
    const { clock, processes, renewals } = await fleet(5)
    const sessions = processes.map((process) => process.sessions('main', { ttl: TTL }))
    const { id } = await sessions[0]!.create({ data: 1 })
    for (let i = 0; i < 2000; i++) {
      const session = await sessions[i % 5]!.get(id)
      await session!.touch()
      await clock.advance(TTL / 2000)
    }
    expect(renewals()).toBeGreaterThanOrEqual(9)
    expect(renewals()).toBeLessThanOrEqual(10 + 4)
  })

  it('is renewed once for concurrent touches', async () => {
    const { clock, processes, renewals } = await fleet(1)
    const sessions = processes[0]!.sessions('main', { ttl: TTL })
    const { id } = await sessions.create({ data: 1 })
    await clock.advance(TTL / 2)
    const loaded = await Promise.all([1, 2, 3].map(() => sessions.get(id)))
    await Promise.all(loaded.map((session) => session!.touch()))
    expect(renewals()).toBe(1)
  })
})

describe('a session', () => {
  it('ends no sooner than its ttl after the last touch, and at most a tenth later', async () => {
    const { clock, processes } = await fleet(1)
    const sessions = processes[0]!.sessions('main', { ttl: TTL })
    const session = await sessions.create({ data: 1 })
    // No renewal: it is too soon after the start.
    await clock.advance(TTL * 0.099)
    await session.touch()
    await clock.advance(TTL)
    expect(await sessions.get(session.id)).toBeDefined()
    await clock.advance(TTL * 0.1)
    expect(await sessions.get(session.id)).toBeUndefined()
  })

  it('ends at its maximum, however it is touched', async () => {
    const { clock, processes } = await fleet(1)
    const sessions = processes[0]!.sessions('main', { ttl: '20m', max: '1h' })
    const events: SessionEvent[] = []
    await sessions.watch((event) => events.push(event)).ready
    const session = await sessions.create({ data: 1 })
    for (let i = 0; i < 59; i++) {
      await clock.advance(MINUTE)
      await session.touch()
    }
    expect(await sessions.get(session.id)).toBeDefined()
    await clock.advance(MINUTE + 10)
    expect(await sessions.get(session.id)).toBeUndefined()
    expect(events.at(-1)).toMatchObject({ type: 'ended', reason: 'expired' })
    expect(events.at(-1)).toHaveProperty('why', expect.stringContaining('maximum life'))
  })

  it('saves in order, and the last write wins', async () => {
    const { processes } = await fleet(2)
    const [a, b] = processes.map((process) => process.sessions<string>())
    const mine = await a!.create({ data: 'zero' })
    const theirs = (await b!.get(mine.id))!
    await Promise.all(['one', 'two', 'three'].map((data) => mine.save(data)))
    expect((await b!.get(mine.id))!.data).toBe('three')
    await theirs.save('theirs')
    expect((await a!.get(mine.id))!.data).toBe('theirs')
  })

  it('gives each caller its own copy of the data, so that a change is not a save', async () => {
    const { processes } = await fleet(1)
    const sessions = processes[0]!.sessions<{ n: number }>()
    const session = await sessions.create({ data: { n: 1 } })
    const { data } = session
    data.n = 2
    expect(session.data).toEqual({ n: 1 })
  })

  it('is reported without its id', async () => {
    const { processes } = await fleet(1)
    const reported: unknown[] = []
    processes[0]!.on('recipe-event', (events) => reported.push(events))
    const session = await processes[0]!.sessions().create({ user: 'ada', data: 1 })
    await session.end('logout')
    expect(reported).toMatchObject([
      { recipe: 'session', event: 'created', detail: 'a session of ada was created' },
      { recipe: 'session', event: 'ended', detail: 'a session was ended: logout' },
    ])
    expect(JSON.stringify(reported)).not.toContain(session.id)
  })
})

describe('in an outage', () => {
  it('a session is an error in an outage, never missing', async () => {
    const { clock, links, processes } = await fleet(1)
    const sessions = processes[0]!.sessions('main', { ttl: TTL })
    const session = await sessions.create({ user: 'ada', data: 1 })
    await clock.advance(TTL / 2)
    links[0]!.freeze()
    const attempts = [
      sessions.get(session.id),
      session.touch(),
      session.save(2),
      session.end(),
      sessions.list('ada'),
      sessions.create({ data: 2 }),
    ].map((attempt) => attempt.catch((error: unknown) => error))
    await clock.advance(10_000)
    for (const outcome of await Promise.all(attempts)) {
      expect(isLeaseholdError(outcome) && outcome.code).toMatch(/^(timeout|unknown-outcome)$/)
    }
  })

  it('an unanswered touch does not count: the next one calls again', async () => {
    const { clock, links, processes } = await fleet(1)
    const session = await processes[0]!.sessions('main', { ttl: TTL }).create({ data: 1 })
    await clock.advance(TTL / 2)
    links[0]!.fault = (call) => (call === 'renew' ? { lost: 'request' } : undefined)
    const failed = session.touch().catch((error: unknown) => error)
    await clock.advance(10_000)
    expect(isLeaseholdError(await failed, 'unknown-outcome')).toBe(true)
    links[0]!.fault = () => undefined
    await session.touch()
    await clock.advance(TTL * 0.9)
    expect(await processes[0]!.sessions().get(session.id)).toBeDefined()
  })

  it('a watch resumes, or says that it missed something', async () => {
    const { clock, links, processes, store } = await fleet(2, { events: 16 })
    const seen: string[] = []
    await processes[0]!.sessions().watch(({ type }) => seen.push(type)).ready
    links[0]!.interrupt()
    await processes[1]!.sessions().create({ data: 1 })
    await clock.advance(5000)
    expect(seen).toEqual(['created'])
    links[0]!.interrupt()
    const { lease } = (await store.grant({ holder: 'x', ttl: 1e9 })) as { lease: string }
    // More than the store keeps, in pages.
    for (let i = 0; i < 3000; i++) await store.claim({ lease, claims: [{ key: `other/${i}` }] })
    await clock.advance(10_000)
    expect(seen).toEqual(['created', 'missed'])
    await processes[1]!.sessions().create({ data: 1 })
    await clock.settle()
    expect(seen).toEqual(['created', 'missed', 'created'])
  })

  it('a watch ends with its client', async () => {
    const { processes, clock } = await fleet(2)
    const seen: string[] = []
    const watch = processes[0]!.sessions().watch(({ type }) => seen.push(type))
    await watch.ready
    await processes[0]!.close()
    await processes[1]!.sessions().create({ data: 1 })
    await clock.settle()
    expect(seen).toEqual([])
    expect(() => processes[0]!.sessions().watch(() => {})).toThrowError(/closed/)
  })
})

describe('whether a renewal is due', () => {
  it('is true at first activity, because the last renewal is unknown', () => {
    const activity = newActivity('l', -Infinity)
    noteReading(activity, 5000, 100)
    expect(isRenewalDue(activity, 1000, 100)).toBe(true)
  })

  it('is false while reads show a recent renewal by another process', () => {
    const activity = newActivity('l', -Infinity)
    noteReading(activity, 5000, 100)
    noteReading(activity, 5090, 190)
    expect(isRenewalDue(activity, 1000, 199)).toBe(false)
    expect(isRenewalDue(activity, 1000, 200)).toBe(true)
  })

  it('does not depend on a late answer', () => {
    const activity = newActivity('l', -Infinity)
    noteReading(activity, 5090, 190)
    noteReading(activity, 5000, 100)
    noteReading(activity, 5090, 195)
    expect(isRenewalDue(activity, 1000, 196)).toBe(true)
    noteReading(activity, 5090, 150)
    noteReading(activity, 5200, 300)
    expect(isRenewalDue(activity, 1000, 294)).toBe(false)
    expect(isRenewalDue(activity, 1000, 295)).toBe(true)
  })
})
