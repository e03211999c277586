import { describe, expect, it } from 'vitest'
import {
  Leasehold,
  type RecipeEvent,
  type SessionEvent,
  type WebStoreOptions,
} from '../../../src/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { type CallName, type Fault, FaultyStore } from '../../client/faulty-store.ts'

const HOUR = 3600_000
const NAME = 'session/web/id/'

/** A session store as a framework calls it, with promises instead of callbacks. */
async function place(options: WebStoreOptions = {}) {
  const clock = new TestClock()
  const inner = memoryStore({ clock })
  const link = new FaultyStore(inner, clock)
  const leasehold = await Leasehold.open(link, { clock, holder: 'site', callTimeout: 200 })
  const store = leasehold.sessionStore(options)
  const site = {
    set: (id: string, session: object) => call((done) => store.set(id, session, done)),
    get: (id: string) => call((done) => store.get(id, done)),
    touch: (id: string, session: object) => call((done) => store.touch(id, session, done)),
    destroy: (id: string) => call((done) => store.destroy(id, done)),
    all: () => call((done) => store.all(done)),
    length: () => call((done) => store.length(done)),
    clear: () => call((done) => store.clear(done)),
  }
  const sessions = leasehold.sessions('web')
  /** The store calls that an action costs. */
  const costOf = async (act: () => Promise<unknown>) => {
    const before = link.calls.length
    await act()
    return link.calls.slice(before)
  }
  return { clock, inner, link, leasehold, store, site, sessions, costOf }
}

// biome-ignore lint/suspicious/noExplicitAny: what a session holds is its application's business
function call(run: (callback: (error: unknown, value?: any) => void) => void): Promise<any> {
  return new Promise((resolve, reject) => {
    run((error, value) => (error ? reject(error) : resolve(value)))
  })
}

/** A session with a cookie of this age, as frameworks write it. */
function withAge(originalMaxAge: number | null, data: object = {}) {
  return { cookie: { originalMaxAge, path: '/' }, ...data }
}

const onlyFor =
  (name: CallName, fault: Fault) =>
  (called: CallName): Fault | undefined =>
    called === name ? fault : undefined

describe('a session store', () => {
  it('counts, lists and ends all sessions', async () => {
    const { site, sessions, clock } = await place()
    const events: SessionEvent[] = []
    await sessions.watch((event) => events.push(event)).ready
    await site.set('one', withAge(null, { n: 1 }))
    await site.set('two', withAge(null, { n: 2 }))
    expect(await site.length()).toBe(2)
    const all: { n: number }[] = await site.all()
    expect(all.map(({ n }) => n).sort()).toEqual([1, 2])
    await site.clear()
    expect(await site.length()).toBe(0)
    expect(await site.get('one')).toBeNull()
    await clock.settle()
    expect(events.slice(2)).toMatchObject([{ why: 'cleared' }, { why: 'cleared' }])
  })

  it('ends a session, and says by whom and why', async () => {
    const { site, sessions, clock } = await place()
    const events: SessionEvent[] = []
    await sessions.watch((event) => events.push(event)).ready
    await site.set('one', { n: 1 })
    await site.destroy('one')
    expect(await site.get('one')).toBeNull()
    await clock.settle()
    expect(events[1]).toMatchObject({ type: 'ended', by: 'site', why: 'destroyed' })
    await site.destroy('one')
    await site.destroy('never there')
  })

  it('needs no callback', async () => {
    const { store, site, clock } = await place()
    store.set('one', { n: 1 })
    await clock.settle()
    expect(await site.get('one')).toEqual({ n: 1 })
    store.set('one', { big: 'x'.repeat(70_000) })
    store.touch('nothing', {})
    store.destroy('one')
    await clock.settle()
    expect(await site.get('one')).toBeNull()
  })

  it('passes errors to the callback', async () => {
    const { site } = await place({ max: '1h' })
    await expect(site.set('two', { big: 'x'.repeat(70_000) })).rejects.toMatchObject({
      code: 'limit-exceeded',
    })
    for (const refused of [
      site.get(5 as never),
      site.set(5 as never, {}),
      site.touch(5 as never, {}),
      site.destroy(5 as never),
    ]) {
      await expect(refused).rejects.toMatchObject({ code: 'invalid-argument' })
    }
  })

  it('calls back with null instead of an error, as frameworks expect', async () => {
    const { store } = await place()
    const [error] = await new Promise<unknown[]>((resolve) => {
      store.get('none', (...given) => resolve(given))
    })
    expect(error).toBeNull()
  })

  it('refuses invalid options by name', async () => {
    const { leasehold } = await place()
    const cases: [object, RegExp][] = [
      [{ user: 5 }, /^user is 5/],
      [{ Store: {} }, /^Store is an object/],
      [{ name: 'a/b' }, /^the name of the session store is "a\/b"/],
      [{ ttl: 'soon' }, /^ttl is "soon"/],
      [{ max: 'never' }, /^max is "never"/],
    ]
    for (const [options, message] of cases) {
      expect(() => leasehold.sessionStore(options)).toThrow(message)
    }
  })

  it('extends the given class', async () => {
    class Base {
      greeting = 'hello'
    }
    const { leasehold } = await place()
    const store = leasehold.sessionStore({ Store: Base })
    expect(store).toBeInstanceOf(Base)
    expect(store.greeting).toBe('hello')
    await call((done) => store.set('one', { n: 1 }, done))
    expect(await call((done) => store.get('one', done))).toEqual({ n: 1 })
  })
})

describe('what a request costs', () => {
  it('is one read if it changes nothing, although the expiry of its cookie moves', async () => {
    const { site, costOf, clock } = await place()
    const expiring = (expires: number) => ({
      cookie: { originalMaxAge: HOUR, expires, originalExpires: expires, path: '/' },
      n: 1,
    })
    await site.set('one', expiring(1))
    await clock.advance(HOUR / 20)
    expect(await costOf(() => site.set('one', expiring(2)))).toEqual(['read'])
    expect(await site.get('one')).toEqual({
      cookie: { originalMaxAge: HOUR, maxAge: HOUR, path: '/' },
      n: 1,
    })
  })

  it('is one update when it changes the data', async () => {
    const { site, costOf } = await place()
    await site.set('one', withAge(HOUR, { n: 1 }))
    expect(await costOf(() => site.set('one', withAge(HOUR, { n: 2 })))).toEqual(['read', 'update'])
    expect(await site.get('one')).toMatchObject({ n: 2 })
  })

  it('is one renewal per tenth of the ttl', async () => {
    const { site, costOf, clock } = await place()
    await site.set('one', withAge(HOUR))
    await clock.advance(HOUR / 10 - 1)
    expect(await costOf(() => site.touch('one', withAge(HOUR)))).toEqual([])
    await clock.advance(1)
    expect(await costOf(() => site.touch('one', withAge(HOUR)))).toEqual(['read', 'renew'])
    expect(await costOf(() => site.touch('one', withAge(HOUR)))).toEqual([])
    await clock.advance(HOUR / 10)
    expect(await costOf(() => site.set('one', withAge(HOUR)))).toEqual(['read', 'renew'])
  })

  it('is one read to touch a session that has ended', async () => {
    const { site, costOf, sessions, clock } = await place()
    await site.set('one', withAge(HOUR))
    await clock.advance(HOUR / 5)
    await sessions.end('one')
    expect(await costOf(() => site.touch('one', withAge(HOUR)))).toEqual(['read'])
    expect(await costOf(() => site.touch('never there', withAge(HOUR)))).toEqual(['read'])
  })

  it('is nothing more for a session that never expires', async () => {
    const { site, costOf, clock } = await place({ ttl: 'infinite' })
    await site.set('one', { n: 1 })
    await clock.advance(1000 * HOUR)
    expect(await costOf(() => site.set('one', { n: 1 }))).toEqual(['read'])
    expect(await costOf(() => site.touch('one', { n: 1 }))).toEqual([])
  })
})

describe('how long a session lives', () => {
  /**
   * In milliseconds, for an untouched session. The store adds a tenth of the ttl for late touches.
   */
  async function lifeOf(options: WebStoreOptions, session: object): Promise<number> {
    const { site, sessions } = await place({ ...options, user: () => 'ada' })
    await site.set('one', session)
    const [{ createdAt, until } = { createdAt: 0, until: 0 }] = await sessions.list('ada')
    return until - createdAt
  }

  it('is the maxAge of its cookie', async () => {
    expect(await lifeOf({ ttl: '5h' }, withAge(HOUR))).toBe((11 * HOUR) / 10)
  })

  it('is the ttl of the store without one, and a day without that', async () => {
    expect(await lifeOf({ ttl: '5h' }, withAge(null))).toBe(5.5 * HOUR)
    expect(await lifeOf({ ttl: '5h' }, {})).toBe(5.5 * HOUR)
    expect(await lifeOf({ ttl: '5h' }, null as never)).toBe(5.5 * HOUR)
    expect(await lifeOf({}, {})).toBe(26.4 * HOUR)
  })

  it('is at most the maximum, and at least what the store can do', async () => {
    expect(await lifeOf({ max: '2h' }, withAge(5 * HOUR))).toBe(2 * HOUR)
    const { ttl } = memoryStore({ clock: new TestClock() }).guarantees
    expect(await lifeOf({}, withAge(0))).toBe(1.1 * ttl.min)
  })

  it('changes with its cookie or user, without an end of the session', async () => {
    const { site, inner, sessions, clock } = await place({ user: ({ user }) => user })
    const events: string[] = []
    await sessions.watch(({ type }) => events.push(type)).ready
    await site.set('one', withAge(HOUR, { user: 'ada' }))
    const [first] = await sessions.list('ada')
    await clock.advance(1000)
    await site.set('one', withAge(2 * HOUR, { user: 'ada', n: 2 }))
    await clock.advance(1000)
    await site.set('one', withAge(2 * HOUR, { user: 'bob', n: 3 }))
    await clock.settle()
    expect(await site.get('one')).toMatchObject({ user: 'bob', n: 3 })
    expect(await sessions.list('ada')).toEqual([])
    const [last] = await sessions.list('bob')
    expect(last!.createdAt).toBe(first!.createdAt)
    expect(last!.until - last!.createdAt).toBe((22 * HOUR) / 10 + 2000)
    expect((await inner.read({ prefix: NAME })).keys).toMatchObject([{ count: 1 }])
    await site.destroy('one')
    await clock.settle()
    expect(events).toEqual(['created', 'ended'])
    const { end } = await inner.read({ lease: first!.lease })
    expect(end).toMatchObject({ reason: 'revoked', by: 'site', why: 'replaced' })
  })

  it('is not renewed right after a lease was replaced', async () => {
    const { site, costOf } = await place()
    await site.set('one', withAge(HOUR))
    expect(await costOf(() => site.set('one', withAge(2 * HOUR)))).toEqual([
      'read',
      'grant',
      'revoke',
    ])
    expect(await costOf(() => site.touch('one', withAge(2 * HOUR)))).toEqual([])
  })

  it('accepts null as no user', async () => {
    const { site, inner } = await place({ user: () => null as never })
    await site.set('one', { n: 1 })
    expect((await inner.read({ prefix: 'session/web/' })).keys).toHaveLength(1)
  })
})

describe('concurrent requests', () => {
  it('create one session, and the last write wins', async () => {
    const { site, link, inner, clock } = await place()
    const theirs = (await Leasehold.open(inner, { clock })).sessionStore()
    link.fault = onlyFor('grant', { there: 50 })
    const later = site.set('one', { n: 1 })
    await call((done) => theirs.set('one', { n: 2 }, done))
    await clock.advance(50)
    await later
    expect((await inner.read({ prefix: NAME })).keys).toMatchObject([{ count: 1 }])
    expect(await site.get('one')).toEqual({ n: 1 })
  })

  it('that create the same session with the same data write it once', async () => {
    const { site, link } = await place()
    await Promise.all([site.set('one', { n: 1 }), site.set('one', { n: 1 })])
    expect(link.count('update')).toBe(0)
  })

  it('do not bring back a session that is ended, which is reported', async () => {
    const { site, leasehold, sessions } = await place()
    const reported: RecipeEvent[] = []
    await site.set('one', { n: 1 })
    await sessions.end('one')
    leasehold.on('recipe-event', (events) => reported.push(events))
    await site.set('one', { n: 2 })
    expect(await site.get('one')).toBeNull()
    expect(reported).toMatchObject([
      { recipe: 'session', event: 'refused', level: 'warn', key: expect.stringContaining(NAME) },
    ])
  })

  it.each(['update', 'renew'] as const)(
    'do not fail because of its end, even if the %s comes late',
    async (name) => {
      const { site, sessions, link, clock } = await place()
      await site.set('one', withAge(HOUR, { n: 1 }))
      await clock.advance(HOUR / 2)
      link.fault = onlyFor(name, { there: 50 })
      const set = site.set('one', withAge(HOUR, { n: 2 }))
      await clock.advance(10)
      link.fault = () => undefined
      await sessions.end('one')
      await clock.advance(50)
      await set
      expect(await site.get('one')).toBeNull()
    },
  )

  it.each(['update', 'renew', 'grant', 'read'] as const)(
    'fail if the %s was not answered',
    async (name) => {
      const { site, link, clock } = await place()
      await site.set('one', withAge(HOUR, { n: 1 }))
      await clock.advance(HOUR / 2)
      link.fault = onlyFor(name, { lost: 'request' })
      const id = name === 'grant' ? 'two' : 'one'
      const failed = site.set(id, withAge(HOUR, { n: 2 })).catch((error: unknown) => error)
      await clock.advance(10_000)
      const code = name === 'read' ? 'timeout' : 'unknown-outcome'
      expect(await failed).toMatchObject({ code })
    },
  )
})
