import type { Event } from 'leasehold/port'
import { describe, expect, it } from 'vitest'
import { concernsOf } from '../../../dashboard/model/attention.ts'
import {
  bytes,
  countdown,
  formatNumber,
  formatSpan,
  plural,
} from '../../../dashboard/model/format.ts'
import { rhythmOf } from '../../../dashboard/model/heartbeats.ts'
import { Mirror } from '../../../dashboard/model/mirror.ts'
import { KINDS, RecentEvents } from '../../../dashboard/model/recent-events.ts'
import { electionsOf, placed, spansOf } from '../../../dashboard/model/recipes/elections.ts'
import { learntOf, poolNames, poolOf } from '../../../dashboard/model/recipes/pools.ts'
import { StatusHistory, servicesOf } from '../../../dashboard/model/recipes/services.ts'
import {
  sessionAt,
  sessionCount,
  sessionTables,
} from '../../../dashboard/model/recipes/sessions.ts'
import { statusTimeline } from '../../../dashboard/model/recipes/status-timeline.ts'
import { routeIn } from '../../../dashboard/parts/route.ts'
import { quantilesOf } from '../../../src/dashboard/live-metrics.ts'

let revision = 0

function event(key: string, more: Partial<Event> = {}): Event {
  revision++
  const who = { holder: 'h', lease: `${revision}.${revision}`, token: revision }
  return { revision, type: 'claimed', key, mode: 'exclusive', at: 1000 * revision, ...who, ...more }
}

function mirrorWith(...events: readonly Event[]): Mirror {
  const mirror = new Mirror()
  for (const one of events) mirror.apply(one)
  return mirror
}

const instance = (id: string, more: object = {}) =>
  event(`services/embedder/${id}`, { value: JSON.stringify({ zone: 'a', ...more }) })

describe('the attention list', () => {
  const nothing = {
    recent: new RecentEvents(),
    lapsed: [],
    storageError: undefined,
    expiryLag: 1,
    now: 0,
  }

  it('is empty if all is well', () => {
    expect(concernsOf({ ...nothing, mirror: mirrorWith(event('a'), instance('i')) })).toEqual([])
  })

  it('is a store that cannot be written, before all else', () => {
    const mirror = mirrorWith(instance('i', { report: { status: 'critical', count: 1 } }))
    const concerns = concernsOf({ ...nothing, mirror, storageError: 'the disk is full' })
    expect(concerns.map(({ kind, level }) => [kind, level])).toEqual([
      ['storage', 'bad'],
      ['service', 'bad'],
    ])
  })

  it('is an expiry that is late, a lapsed lease, a service with a sick instance', () => {
    const mirror = mirrorWith(
      instance('well'),
      instance('ill', { report: { status: 'critical', note: 'no memory', count: 1 } }),
    )
    const lapsed = [{ lease: '1.1', holder: 'ada', since: 1000, until: 9000 }]
    const concerns = concernsOf({ ...nothing, mirror, lapsed, expiryLag: 900, now: 4000 })
    expect(concerns.map(({ kind }) => kind)).toEqual(['lag', 'service', 'lapsed'])
    expect(concerns[1]!.title).toBe('embedder: 1 of 2 healthy')
    expect(concerns[1]!.detail).toBe('ill of h is critical: no memory')
    expect(concerns[2]!.detail).toContain('3 s ago without a heartbeat; lost in 5 s')
    expect(concernsOf({ ...nothing, mirror, lapsed, now: 9001 }).map((it) => it.kind)).toEqual([
      'service',
    ])
  })

  it('has no instance that was drained, unless no other is left', () => {
    const [one, two] = [instance('one', {}), instance('two', {})]
    const drain = (of: number, id: string) => {
      const value = { status: 'critical', note: 'drained by ann: upgrade', of, drained: 'ann' }
      return event(`health/embedder/${id}`, { mode: 'shared', value: JSON.stringify(value) })
    }
    const half = mirrorWith(one, two, drain(one.token, 'one'))
    expect(concernsOf({ ...nothing, mirror: half })).toEqual([])
    const none = mirrorWith(one, two, drain(one.token, 'one'), drain(two.token, 'two'))
    expect(concernsOf({ ...nothing, mirror: none })).toMatchObject([
      {
        level: 'warn',
        title: 'embedder: 0 of 2 healthy',
        detail: 'one of h and 1 more are drained by ann: upgrade',
      },
    ])
  })

  it('has a long queue, or one with a long wait; an election is neither', () => {
    const line = (key: string, length: number) =>
      Array.from({ length }, () => event(key, { at: 1000 }))
    const mirror = mirrorWith(
      ...line('long', 11),
      ...line('slow', 2),
      ...line('election/x/line', 12),
    )
    const at = (now: number) => concernsOf({ ...nothing, mirror, now }).map(({ id }) => id)
    expect(at(2000)).toEqual(['queue/long'])
    expect(at(62_000)).toEqual(['queue/long', 'queue/slow'])
  })

  it('has a holder that repeatedly dies and returns; all its leases count once', () => {
    const recent = new RecentEvents()
    const live = (...tokens: number[]) => {
      for (const token of tokens) recent.add(event('k', { holder: 'cy', token }))
    }
    const die = (at: number, ...tokens: number[]) => {
      const end = { reason: 'expired' } as const
      for (const token of tokens) {
        recent.add(event('k', { type: 'removed', holder: 'cy', token, at, end }))
      }
    }
    live(1, 2, 3)
    die(1000, 1, 2)
    live(4, 5)
    // A late expiry belongs to its previous life.
    die(2000, 3)
    expect(recent.flapping(2000)).toEqual([])
    die(10_000, 4, 5)
    live(6)
    expect(recent.flapping(10_000)).toEqual([])
    die(20_000, 6)
    expect(recent.flapping(20_000)).toEqual([{ holder: 'cy', times: 3, last: 20_000 }])
    expect(recent.flapping(320_000)).toEqual([])
  })
})

describe('the recent events', () => {
  it('is the latest first, of the wanted kinds and with the wanted words', () => {
    const recent = new RecentEvents()
    recent.add(event('jobs/1', { holder: 'Ada' }))
    recent.add(event('jobs/1', { type: 'updated' }))
    recent.add(event('mail/1', { type: 'removed', end: { reason: 'expired' } }))
    const all = new Set(KINDS)
    expect(recent.list({ kinds: all, search: '' }).map(({ type }) => type)).toEqual([
      ...['removed', 'updated', 'claimed'],
    ])
    expect(recent.list({ kinds: new Set(['expired']), search: '' })).toHaveLength(1)
    expect(recent.list({ kinds: all, search: ' ada ' })).toHaveLength(1)
  })

  it('shows a claim that holds at once as held, and one that waits as claimed and then as held', () => {
    const recent = new RecentEvents()
    const heldAfter = (made: ReturnType<typeof event>, at = made.revision) =>
      recent.add({ ...made, type: 'held', revision: at })
    const [one, two] = [event('k'), event('k')]
    recent.add(one)
    heldAfter(one)
    recent.add(two)
    recent.add({ ...one, type: 'removed', revision: 900, end: { reason: 'released' } })
    heldAfter(two, 900)
    const shown = recent.list({ kinds: new Set(KINDS), search: '' })
    expect(shown.map(({ type, token }) => [type, token])).toEqual([
      ...[
        ['held', two.token],
        ['removed', one.token],
      ],
      ...[
        ['claimed', two.token],
        ['held', one.token],
      ],
    ])
  })

  it('is bounded, and then still the latest first', () => {
    const recent = new RecentEvents()
    const first = revision + 1
    for (let at = 0; at < 5000; at++) recent.add(event('k'))
    const last = event('k')
    recent.add(last)
    recent.add({ ...last, type: 'held' })
    const kept = recent.list({ kinds: new Set(KINDS), search: '' }).map((it) => it.revision)
    expect(kept).toHaveLength(4000)
    expect(kept[0]).toBe(first + 5000)
    expect(kept.at(-1)).toBe(first + 1001)
  })
})

describe('services', () => {
  it("show the worse of an instance's own state and its checks, and who has drained it", () => {
    const one = instance('i', { report: { status: 'warning', note: 'slow', count: 1 } })
    const check = (status: string, more: object = {}) =>
      event('health/embedder/i', {
        mode: 'shared',
        value: JSON.stringify({ status, note: 'x', of: one.token, ...more }),
      })
    const shown = (...events: Event[]) => servicesOf(mirrorWith(one, ...events))[0]!.instances[0]!
    expect(shown()).toMatchObject({ status: 'warning', note: 'slow', drainedBy: undefined })
    expect(shown(check('passing'))).toMatchObject({ status: 'warning' })
    const drained = shown(check('passing'), check('critical', { drained: 'ann' }))
    expect(drained).toMatchObject({ status: 'critical', drainedBy: 'ann' })
  })

  it('remember how an instance was, and that it was gone', () => {
    const history = new StatusHistory()
    const one = instance('i')
    history.add(one)
    const ill = { report: { status: 'critical', note: 'no memory', count: 1 } }
    history.add({ ...one, type: 'updated', value: JSON.stringify(ill), at: 2 })
    history.add({ ...one, type: 'updated', value: JSON.stringify({ ...ill, load: 3 }), at: 3 })
    history.add({ ...one, type: 'removed', at: 4, end: { reason: 'expired' } })
    expect(history.of('embedder/i').map(({ status, note }) => [status, note])).toEqual([
      ['passing', undefined],
      ['critical', 'no memory'],
      ['gone', undefined],
    ])
  })

  it('are unknown until something reports their state', () => {
    const known = (...more: Parameters<typeof statusTimeline>) => {
      const pieces = statusTimeline(...more)
      return pieces.map(({ from, to, status }) => [from, to, status])
    }
    const one = { since: 0, status: 'critical', note: 'x' } as const
    // Nothing was received: the state counts since it was first seen, or since the drain.
    expect(known([], one, 90, 100)).toEqual([[90, 100, 'critical']])
    // An event of a check says nothing about an unknown registration.
    const gone = { at: 40, status: 'gone', note: undefined } as const
    expect(known([gone], one, 90, 100)).toEqual([[90, 100, 'critical']])
    const well = { at: 50, status: 'passing', note: undefined } as const
    const ill = { at: 60, status: 'critical', note: 'x' } as const
    expect(known([gone, well, ill], one, 90, 100)).toEqual([
      [50, 60, 'passing'],
      [60, 100, 'critical'],
    ])
    const before = { at: -20, status: 'gone', note: undefined } as const
    expect(known([before, well], one, 90, 100)).toEqual([
      [-20, 50, 'gone'],
      [50, 90, 'passing'],
      [90, 100, 'critical'],
    ])
  })

  it('are not broken by any user input', () => {
    const mirror = mirrorWith(event('services/x/y', { value: 'nonsense' }), event('services/x'))
    expect(servicesOf(mirror)).toEqual([])
  })
})

describe('elections', () => {
  const candidate = (name: string, leads: boolean) =>
    event('election/boss/line', { value: JSON.stringify({ candidate: name, leads }) })

  it('have a leader only when the first in the queue has taken the term', () => {
    const shown = (...events: Event[]) => electionsOf(mirrorWith(...events))[0]!
    expect(shown(candidate('a', false), candidate('b', false))).toMatchObject({
      leader: undefined,
      others: [{ candidate: 'a' }, { candidate: 'b' }],
    })
    expect(shown(candidate('a', true), candidate('b', false))).toMatchObject({
      leader: { candidate: 'a' },
      others: [{ candidate: 'b' }],
    })
  })

  it('have terms in the order of their time, up to the current one', () => {
    const end = { reason: 'released' } as const
    const tenure = (token: number, heldSince: number, endedAt: number) => ({
      ...{ token, heldSince, endedAt, end, holder: `h${token}`, lease: 'l' },
    })
    const current = { holder: 'now', token: 3, since: 50 }
    const spans = spansOf([tenure(2, 20, 40), tenure(1, 0, 20)], current, 100)
    expect(spans.map(({ token, from, to }) => [token, from, to])).toEqual([
      [1, 0, 20],
      [2, 20, 40],
      [3, 50, 100],
    ])
    expect(placed(spans[1]!, 0, 100)).toEqual({ left: 0.2, width: 0.2 })
    expect(placed({ from: -50, to: 50 }, 0, 100)).toEqual({ left: 0, width: 0.5 })
  })
})

describe('pools', () => {
  it('show holders, waiters with their times, and learnt values', () => {
    const definition = JSON.stringify({
      resources: [
        { name: 'gpu-0', shares: 1, attributes: { memory: 40 } },
        { name: 'gpu-1', shares: 1, attributes: {} },
      ],
      tenants: { a: 1, b: 1 },
      ...{ halfLife: 1e6, notice: 1, maxHold: 0 },
    })
    const work = { tenant: 'a', kind: 'train', priority: 0, count: 1, where: [], booked: 60_000 }
    const visibleLeases = { accounts: {}, open: [], kinds: { train: { 4: 9, 6: 1 } } }
    const mirror = mirrorWith(
      event('pool/gpu/definition', { value: definition }),
      event('pool/gpu/r/gpu-0', { value: JSON.stringify(work), at: 0 }),
      event('pool/gpu/r/gpu-1', { value: JSON.stringify({ ...work, tenant: 'b' }), at: 0 }),
      event('pool/gpu/line', { mode: 'shared', value: JSON.stringify(work), at: 0 }),
      event('pool/gpu/books', { mode: 'shared', value: JSON.stringify(visibleLeases) }),
    )
    expect(poolNames(mirror)).toEqual(['gpu'])
    const pool = poolOf(mirror, 'gpu', 1000, () => 5000)!
    expect(pool.resources.map(({ free, permits }) => [free, permits[0]?.tenant])).toEqual([
      [0, 'a'],
      [0, 'b'],
    ])
    expect(pool.resources[0]!.permits[0]!.until).toBe(5000)
    expect(pool.queue[0]!.forecast).toMatchObject({ basis: 'observed' })
    expect(pool.kinds[0]).toMatchObject({ kind: 'train', seen: 10 })
    expect(pool.kinds[0]!.bars.map(({ count }) => count)).toEqual([9, 0, 1])
  })

  it('leave out a pool with an unreadable definition', () => {
    const mirror = mirrorWith(event('pool/x/definition', { value: '{' }))
    expect(poolOf(mirror, 'x', 0, () => undefined)).toBeUndefined()
  })

  it('explain a learnt ttl, or the fault of the stored values', () => {
    const mirror = mirrorWith(event('adaptive/train', { value: 'adaptive-ttl/1 0\ntrain' }))
    const [learnt] = learntOf(mirror, { min: 10, max: 1e9, step: 1 })
    expect(learnt).toMatchObject({ kind: 'train', choice: { learnt: false } })
    expect(learnt!.choice.why).toContain('its checksum is wrong')
  })
})

describe('sessions', () => {
  it('are shown by table, with their users and maximum lives', () => {
    const value = `${JSON.stringify({ user: 'ada', ttl: 60_000, max: 600_000 })}\n{"cart":[]}`
    const mirror = mirrorWith(
      event('session/main/id/abc', { value, at: 5 }),
      event('session/main/user/ada/abc'),
      event('session/main/id/bad', { value: 'nonsense' }),
    )
    expect(sessionTables(mirror)).toEqual(['main'])
    expect(sessionCount(mirror, 'main')).toBe(2)
    const session = { user: 'ada', ttl: 60_000, max: 600_000, since: 5 }
    expect(sessionAt(mirror, 'main', 0)).toMatchObject(session)
    expect(sessionAt(mirror, 'main', 1)).toMatchObject({ user: undefined })
    expect(sessionAt(mirror, 'main', 2)).toBeUndefined()
  })
})

describe('figures', () => {
  it('are written in plain words', () => {
    expect([0, 999, 1500, 90_000, 150_000, 1e7, 3e8, Infinity].map(formatSpan)).toEqual([
      ...['0 ms', '999 ms', '1.5 s', '90 s', '2.5 min', '2.8 h', '3.5 d', 'ever'],
    ])
    expect([4321, 12_345, Infinity].map(countdown)).toEqual(['4.3 s', '12 s', 'never ends'])
    expect([0, 0.123, 3, 12.34, 123.4, 12_345].map(formatNumber)).toEqual([
      ...['0', '0.12', '3', '12.3', '123', '12,345'],
    ])
    expect([bytes(170 * 2 ** 20), bytes(3 * 2 ** 30)]).toEqual(['170 MiB', '3.0 GiB'])
    expect([plural(1, 'key'), plural(1200, 'key')]).toEqual(['1 key', '1,200 keys'])
  })

  it('of heartbeats are a rhythm from three on', () => {
    expect(rhythmOf([0, 1000])).toBeUndefined()
    expect(rhythmOf([0, 1000, 2000, 3000])).toEqual({
      ...{ beats: 4, every: 1000, jitter: 0, longest: 1000 },
    })
    expect(rhythmOf([0, 500, 2000])).toMatchObject({ every: 1000, jitter: 500, longest: 1500 })
  })

  it('of commits are the additions to a histogram, in milliseconds', () => {
    expect(quantilesOf([0.001, 0.002], [1, 1, 0], [1, 1, 0])).toBeUndefined()
    expect(quantilesOf([0.001, 0.002], [0, 0, 0], [10, 0, 0])!.median).toBeCloseTo(0.5)
    expect(quantilesOf([0.001, 0.002], [5, 0, 0], [5, 10, 0])!.high).toBeCloseTo(1.99)
  })
})

describe('the address of a view', () => {
  it('is parsed as it is printed', () => {
    expect(routeIn('')).toMatchObject({ view: 'overview', at: undefined })
    expect(routeIn('#/keys/jobs%2F1%20a')).toMatchObject({ view: 'keys', at: 'jobs/1 a' })
    expect(routeIn('#/leases?holder=ada').query.get('holder')).toBe('ada')
    expect(routeIn('#/keys/%E0%A4%A').at).toBe('%E0%A4%A')
  })
})
