import { describe, expect, it } from 'vitest'
import {
  Leasehold,
  type RecipeEvent,
  type SessionEvent,
  type SessionsOptions,
} from '../../../src/index.ts'
import { sha256 } from '../../../src/port/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { type CallName, FaultyStore } from '../../client/faulty-store.ts'
import { changedStore } from '../../setup/changed-store.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** Two processes on one store, each with its own link. */
async function place() {
  const clock = new TestClock()
  const store = memoryStore({ clock })
  const links = [new FaultyStore(store, clock), new FaultyStore(store, clock)] as const
  const open = (link: FaultyStore, holder: string) => Leasehold.open(link, { clock, holder })
  const a = await open(links[0], 'a')
  const b = await open(links[1], 'b')
  return { clock, store, a, b, link: links[0], otherLine: links[1] }
}

const late = (name: CallName) => (called: CallName) => (called === name ? { there: 10 } : undefined)

describe('the times of a session', () => {
  async function timesOf(general: SessionsOptions, wanted: SessionsOptions = {}) {
    const { a, store } = await place()
    const sessions = a.sessions('main', general)
    const { lease } = await sessions.create({ user: 'ada', data: 1, ...wanted })
    const { ttl, grantedAt, endOfLife } = (await store.read({ lease })).lease!
    return { ttl, max: endOfLife - grantedAt }
  }

  it('are 20 minutes without use, and 24 hours in all', async () => {
    expect(await timesOf({})).toEqual({ ttl: 20 * MINUTE, max: 24 * HOUR })
  })

  it('prefer the options of the session', async () => {
    const general = { ttl: '5m', max: '1h' } as const
    expect(await timesOf(general)).toEqual({ ttl: 5 * MINUTE, max: HOUR })
    expect(await timesOf(general, { ttl: '6m' })).toEqual({ ttl: 6 * MINUTE, max: HOUR })
    expect(await timesOf(general, { max: '5m' })).toEqual({ ttl: 5 * MINUTE, max: 5 * MINUTE })
  })

  it('adapt to each other if only one was given', async () => {
    expect(await timesOf({ ttl: '48h' })).toEqual({ ttl: 48 * HOUR, max: 48 * HOUR })
    expect(await timesOf({ max: '5m' })).toEqual({ ttl: 5 * MINUTE, max: 5 * MINUTE })
    expect(await timesOf({ max: '2h' })).toEqual({ ttl: 20 * MINUTE, max: 2 * HOUR })
  })

  it('may be infinite', async () => {
    const { a, b, clock, otherLine } = await place()
    const times = { ttl: 'infinite', max: 'infinite' } as const
    const { id } = await a.sessions().create({ data: 1, ...times })
    await clock.advance(1e6 * HOUR)
    const loaded = (await b.sessions().get(id))!
    await loaded.touch()
    await loaded.touch()
    expect(loaded.data).toBe(1)
    expect(otherLine.count('renew')).toBe(1)
  })

  it('are refused by name if they are invalid', async () => {
    const { a } = await place()
    const wrong = (options: unknown) => () => a.sessions('main', options as SessionsOptions)
    expect(wrong({ ttl: 'soon' })).toThrow(/^ttl is "soon"/)
    expect(wrong({ max: 'never' })).toThrow(/^max is "never"/)
    expect(wrong({ ttl: '2h', max: '1h' })).toThrow(/^max 1h is shorter than ttl 2h/)
    expect(wrong([])).toThrow(/^options is /)
    expect(wrong(null)).toThrow(/^options is /)
    const refused = a.sessions('main', { ttl: '2h' }).create({ data: 1, max: '1h' })
    await expect(refused).rejects.toMatchObject({ code: 'invalid-argument' })
  })
})

describe('arguments', () => {
  it('are checked before anything is sent', async () => {
    const { a, link } = await place()
    const sessions = a.sessions()
    const before = link.calls.length
    for (const refused of [
      sessions.create(null as never),
      sessions.create('data' as never),
      sessions.get(null as never),
      sessions.end(7 as never),
      sessions.endAll('ada', { except: 7 as never }),
      sessions.endAll(''),
      sessions.list(''),
      sessions.list('ada', { limit: 1.5 }),
    ]) {
      await expect(refused).rejects.toMatchObject({ code: 'invalid-argument' })
    }
    await expect(sessions.list('ada', { limit: 0 })).rejects.toThrow(/^limit is 0/)
    await expect(sessions.list('')).rejects.toThrow(/^user is ""/)
    expect(link.calls.length).toBe(before)
  })

  it('may name users longer than the name of a holder', async () => {
    const { a, store } = await place()
    const user = 'u'.repeat(300)
    const session = await a.sessions().create({ user, data: 1 })
    expect(await a.sessions().list(user)).toMatchObject([{ user, ref: session.ref, data: 1 }])
    const nobody = await a.sessions().create({ data: 1 })
    const holders = [session, nobody].map(async ({ lease }) => (await store.read({ lease })).lease)
    expect(await Promise.all(holders)).toMatchObject([
      { holder: 'u'.repeat(256) },
      { holder: 'nobody' },
    ])
  })
})

describe('a session that has ended', () => {
  it('was ended by one of several callers, which reports it', async () => {
    const { a, b, link, clock } = await place()
    const reported: RecipeEvent[] = []
    for (const process of [a, b]) process.on('recipe-event', (events) => reported.push(events))
    const { id } = await b.sessions().create({ data: 1 })
    reported.length = 0
    link.fault = late('revoke')
    const slower = a.sessions().end(id, 'too late')
    expect(await b.sessions().end(id)).toBe(true)
    await clock.advance(10)
    expect(await slower).toBe(false)
    expect(await b.sessions().end(id)).toBe(false)
    expect(await b.sessions().end('never there')).toBe(false)
    expect(reported).toMatchObject([{ event: 'ended', detail: 'a session was ended: ended' }])
  })

  it('is neither found nor missing if the outcome is unknown', async () => {
    const { a, link, clock } = await place()
    const { id } = await a.sessions().create({ data: 1 })
    link.fault = (name) => (name === 'revoke' ? { lost: 'reply' } : undefined)
    const end = a.sessions().end(id)
    const unknown = expect(end).rejects.toMatchObject({ code: 'unknown-outcome' })
    await clock.advance(30_000)
    await unknown
  })

  it('refuses touch and save with the reason', async () => {
    const { a, b } = await place()
    const session = await a.sessions().create({ data: 1 })
    const other = (await b.sessions().get(session.id))!
    await session.end('logout')
    const reason = { code: 'lease-ended', reason: 'revoked', by: 'a', why: 'logout' }
    await expect(other.touch()).rejects.toMatchObject(reason)
    await expect(other.touch()).rejects.toThrow(/has ended: revoked \(logout\). Create/)
    await expect(other.save(2)).rejects.toMatchObject(reason)
  })

  it('refuses them also if the store does not remember how it ended', async () => {
    const { clock, store } = await place()
    const forgetful = changedStore(store, {
      renew: async ([lease]) => ({ lost: [{ lease: lease!, end: undefined }], capped: [] }),
    })
    const leasehold = await Leasehold.open(forgetful, { clock })
    const session = await leasehold.sessions('main', { ttl: '1h' }).create({ data: 1 })
    await clock.advance(HOUR / 2)
    const failed = session.touch()
    await expect(failed).rejects.toMatchObject({ code: 'lease-ended' })
    await expect(failed).rejects.toThrow(/has ended. Create/)
  })

  it('says that it expired, without a reason', async () => {
    const { a, clock } = await place()
    const session = await a.sessions('main', { ttl: '1h' }).create({ data: 1 })
    await clock.advance(2 * HOUR)
    await expect(session.touch()).rejects.toThrow(/has ended: expired. Create/)
  })

  it('is known to have ended: a recent touch does not hide it', async () => {
    const { a, b } = await place()
    const sessions = a.sessions<number>()
    const make = () => sessions.create({ data: 1 })
    const ended = { code: 'lease-ended' }
    const endedHere = await make()
    await endedHere.end()
    await expect(endedHere.touch()).rejects.toMatchObject(ended)
    const loadedAgain = await make()
    await b.sessions().end(loadedAgain.id)
    await loadedAgain.touch()
    expect(await sessions.get(loadedAgain.id)).toBeUndefined()
    await expect(loadedAgain.touch()).rejects.toMatchObject(ended)
    const saved = await make()
    await b.sessions().end(saved.id)
    await expect(saved.save(2)).rejects.toMatchObject(ended)
    await expect(saved.touch()).rejects.toMatchObject(ended)
  })

  it('is reported with the given reason, or the default', async () => {
    const { a, clock } = await place()
    const events: SessionEvent[] = []
    using watch = a.sessions().watch((event) => events.push(event))
    await watch.ready
    const session = await a.sessions().create({ user: 'ada', data: 1 })
    await session.end()
    await a.sessions().create({ user: 'ada', data: 1 })
    expect(await a.sessions().endAll('ada', { why: 'new password' })).toBe(1)
    await a.sessions().create({ user: 'ada', data: 1 })
    expect(await a.sessions().endAll('ada')).toBe(1)
    await clock.settle()
    expect(events.filter(({ type }) => type === 'ended')).toMatchObject([
      { why: 'ended', user: 'ada', ref: session.ref },
      { why: 'new password' },
      { why: 'all sessions of the user were ended' },
    ])
  })
})

describe('a watch of sessions', () => {
  async function watched() {
    const made = await place()
    const events: SessionEvent[] = []
    await made.a.sessions().watch((event) => events.push(event)).ready
    return { ...made, events }
  }

  it('reports created and ended sessions, whatever the data, and no saves', async () => {
    const { a, clock, events } = await watched()
    const session = await a.sessions<object>().create({ data: { since: 1 } })
    await session.save({ since: 2 })
    await session.end()
    await clock.settle()
    const { ref } = session
    expect(events).toEqual([
      { type: 'created', ref, user: undefined, at: expect.any(Number) },
      {
        type: 'ended',
        ref,
        user: undefined,
        at: expect.any(Number),
        reason: 'ended',
        by: 'a',
        why: 'ended',
      },
    ])
  })

  it('reports an end that arrives together with an earlier save', async () => {
    const { a, b, clock, link, events } = await watched()
    const { id } = await a.sessions().create({ data: 1 })
    await clock.settle()
    link.interrupt()
    const session = await b.sessions().get(id)
    await session!.save(2)
    await session!.end()
    await clock.advance(10_000)
    expect(events.map(({ type }) => type)).toEqual(['created', 'ended'])
  })

  it('continues after something else wrote to the key of a session', async () => {
    const { a, clock, store, events } = await watched()
    await store.grant({ holder: 'x', ttl: HOUR, claims: [{ key: 'session/main/id/strange' }] })
    const { ref } = await a.sessions().create({ data: 1 })
    await clock.settle()
    expect(events).toMatchObject([
      { type: 'created', ref: 'strange' },
      { type: 'created', ref },
    ])
  })
})

describe('a session that a process has not seen yet', () => {
  it('is renewed by its first touch', async () => {
    const { a, b, otherLine, clock } = await place()
    const { id } = await a.sessions('main', { ttl: '1h' }).create({ data: 1 })
    await clock.advance(HOUR)
    await (await b.sessions().get(id))!.touch()
    expect(otherLine.count('renew')).toBe(1)
    await clock.advance(HOUR)
    expect(await b.sessions().get(id)).toBeDefined()
  })

  it('is damaged if something else wrote to its key', async () => {
    const { a, store } = await place()
    const key = `session/main/id/${sha256('mine')}`
    await store.grant({ holder: 'x', ttl: HOUR, claims: [{ key, value: 'no session' }] })
    const failed = await a
      .sessions()
      .get('mine')
      .catch((error: unknown) => error)
    expect(failed).toMatchObject({ code: 'storage-damaged', cause: expect.any(SyntaxError) })
    const empty = `session/main/id/${sha256('empty')}`
    await store.grant({ holder: 'x', ttl: HOUR, claims: [{ key: empty }] })
    await expect(a.sessions().get('empty')).rejects.toMatchObject({ code: 'storage-damaged' })
  })
})

describe('the sessions of a user', () => {
  it('are listed and ended page by page, however many there are', async () => {
    const { a, link } = await place()
    const sessions = a.sessions<number>()
    const made = await Promise.all(
      Array.from({ length: 1002 }, (_, data) => sessions.create({ user: 'ada', data })),
    )
    const callsOf = async (act: () => Promise<unknown>) => {
      const before = link.calls.length
      await act()
      return link.calls.length - before
    }
    expect(await callsOf(() => sessions.list('ada'))).toBe(1 + 1000)
    const all = await sessions.list('ada', { limit: 5000 })
    expect(all).toHaveLength(1002)
    expect(new Set(all.map(({ data }) => data)).size).toBe(1002)
    expect(await sessions.list('ada', { limit: 1001 })).toHaveLength(1001)
    expect(await sessions.endAll('ada', { except: made[500]!.id })).toBe(1001)
    expect(await sessions.list('ada')).toMatchObject([{ data: 500, ref: made[500]!.ref }])
  })

  it('are read 64 at a time', async () => {
    const { a, link, clock } = await place()
    const sessions = a.sessions<number>()
    for (let data = 0; data < 65; data++) await sessions.create({ user: 'ada', data })
    link.fault = late('read')
    const before = link.calls.length
    const listed = sessions.list('ada')
    await clock.advance(10)
    expect(link.calls.length - before).toBe(1 + 64)
    await clock.advance(20)
    expect((await listed).map(({ data }) => data).sort((one, two) => one - two)).toEqual(
      Array.from({ length: 65 }, (_, data) => data),
    )
  })

  it('are listed without those that end meanwhile', async () => {
    const { a, b, link, clock } = await place()
    const { id } = await a.sessions().create({ user: 'ada', data: 'ends' })
    await a.sessions().create({ user: 'ada', data: 'stays' })
    link.fault = late('read')
    const listed = a.sessions().list('ada')
    await clock.advance(10)
    await b.sessions().end(id)
    await clock.advance(10)
    expect(await listed).toMatchObject([{ data: 'stays' }])
  })
})
