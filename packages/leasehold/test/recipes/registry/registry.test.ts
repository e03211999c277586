import { describe, expect, it } from 'vitest'
import { Leasehold } from '../../../src/index.ts'
import { TestClock, testStore } from '../../../src/testing/index.ts'
import { FaultyStore } from '../../client/faulty-store.ts'

async function scene() {
  const { store, clock } = testStore()
  const link = new FaultyStore(store, clock)
  const open = (holder: string) => Leasehold.open(store, { holder, clock })
  const far = await Leasehold.open(link, { holder: 'far', clock })
  return { store, clock, link, open, far }
}

describe('a watch through an outage of the store', () => {
  it('keeps showing the last known instances, reports how stale they are, and catches up', async () => {
    const { clock, link, open, far } = await scene()
    const near = await open('near')
    await near.registry.register('s', { id: 'stays', address: 'x:1' })
    const goes = await near.registry.register('s', { id: 'goes' })
    const watch = far.registry.watch('s')
    await clock.advance(10)
    await watch.ready
    expect(watch.live).toBe(true)
    expect(watch.age()).toBeLessThan(3000)
    link.freeze()
    await goes.release()
    await near.registry.register('s', { id: 'new' })
    await clock.advance(60_000)
    expect(watch.instances.map(({ id }) => id)).toEqual(['goes', 'stays'])
    expect(watch.pick()).toMatchObject({ service: 's' })
    expect(watch.age()).toBeGreaterThan(50_000)
    expect(watch.live).toBe(false)
    link.thaw()
    await clock.advance(10_000)
    expect(watch.live).toBe(true)
    expect(watch.age()).toBeLessThan(3000)
    expect(watch.instances.map(({ id }) => id)).toEqual(['new', 'stays'])
  })
})

describe('a registration', () => {
  it('returns by itself after an outage, with current data and a higher token', async () => {
    const { clock, link, open, far } = await scene()
    const near = await open('near')
    const me = await far.registry.register('s', { id: 'i', ttl: '5s' })
    const events: string[] = []
    me.on('absent', ({ error }) => events.push(`absent: ${error.reason}`))
    me.on('returned', () => events.push('returned'))
    const before = me.token!
    link.freeze()
    await clock.advance(20_000)
    expect(me.state).toBe('absent')
    expect(await near.registry.find('s', { status: 'any' })).toEqual([])
    await expect(me.update({ tags: ['changed'] })).rejects.toMatchObject({ code: 'lost' })
    link.thaw()
    await clock.advance(10_000)
    expect(me.state).toBe('present')
    expect(await near.registry.find('s')).toMatchObject([{ tags: ['changed'], token: me.token }])
    expect(me.token).toBeGreaterThan(before)
    expect(events).toEqual(['absent: unreachable', 'returned'])
    expect(me.signal.aborted).toBe(false)
  })

  it('that was released while it was absent stays away', async () => {
    const { clock, link, open, far } = await scene()
    const near = await open('near')
    const me = await far.registry.register('s', { id: 'i', ttl: '5s' })
    link.freeze()
    await clock.advance(20_000)
    await me.release()
    link.thaw()
    await clock.advance(60_000)
    expect(me.state).toBe('ended')
    expect(await near.registry.find('s', { status: 'any' })).toEqual([])
  })

  it('knows on the first statement after a stall that it is absent', async () => {
    const clock = new TestClock()
    const { store } = testStore()
    const leasehold = await Leasehold.open(store, { clock })
    const me = await leasehold.registry.register('s', { ttl: '5s' })
    expect(me.state).toBe('present')
    clock.stall(6000)
    expect(me.state).toBe('absent')
  })

  it('does not return after a revocation, and ends with its client', async () => {
    const { store, clock, open } = await scene()
    const near = await open('near')
    const [one, two] = [
      await near.registry.register('s', { id: 'one' }),
      await near.registry.register('s', { id: 'two' }),
    ]
    const reasons: unknown[] = []
    for (const me of [one, two]) me.on('ended', ({ error }) => reasons.push(error.reason))
    await store.revoke({ target: { lease: one.lease! } })
    await clock.advance(60_000)
    await near.close()
    await clock.advance(60_000)
    expect([one.state, two.state]).toEqual(['ended', 'ended'])
    expect(reasons).toEqual(['revoked', 'closed'])
    expect((await store.read({ prefix: 'services/' })).keys).toEqual([])
  })

  it('returns after a revocation if configured, but not after its client is closed', async () => {
    const { store, clock, open } = await scene()
    const near = await open('near')
    const me = await near.registry.register('s', { id: 'i', onRevoked: 'return' })
    const first = me.token!
    await store.revoke({ target: { lease: me.lease! } })
    await clock.advance(1000)
    expect(me.state).toBe('present')
    expect(me.token).toBeGreaterThan(first)
    await near.close()
    expect(me.state).toBe('ended')
    const wrong = { onRevoked: 'sulk' as never }
    await expect(near.registry.register('s', wrong)).rejects.toThrowError(/onRevoked is "sulk"/)
  })

  it('has its own lease: ending it ends no lock of the same process', async () => {
    const { store, clock, open } = await scene()
    const near = await open('near')
    const lock = await near.lock('k', { ttl: '15s' })
    const me = await near.registry.register('s', {})
    await store.revoke({ target: { lease: me.lease! } })
    await clock.advance(10)
    expect(me.state).toBe('ended')
    expect(lock.held).toBe(true)
  })

  it.each([
    ['a service with a slash', 'a/b', {}, /service is "a\/b": it must not contain a slash/],
    ['an empty id', 's', { id: '' }, /id is "": give a string of 1 to 128 characters/],
    ['a space in an id', 's', { id: 'a b' }, /slash or a space/],
    ['tags that are not a list', 's', { tags: 'x' }, /tags is "x": give an array/],
    ['65 tags', 's', { tags: Array.from({ length: 65 }, (_, i) => `t${i}`) }, /at most 64/],
    ['a negative weight', 's', { weight: -1 }, /weight is -1: it must be a number from 0/],
    ['a number as metadata', 's', { metadata: { a: 5 } }, /metadata\.a is 5: give a string/],
    ['a control character', 's', { address: 'a\r\nb' }, /printable/],
    ['no description', 's', undefined, /has no description/],
    ['a check without address', 's', { check: { http: '/health' } }, /the instance has no address/],
    ['a check of nothing', 's', { check: {} }, /one of http, tcp, grpc and ttl/],
    ['two checks', 's', { check: { ttl: '5s', tcp: true } }, /names tcp and ttl/],
    [
      'a time-out longer than the interval',
      's',
      { address: 'a:1', check: { tcp: true, every: '1s', timeout: '2s' } },
      /check\.timeout 2s is longer than check\.every 1s/,
    ],
    [
      'too much',
      's',
      { metadata: Object.fromEntries(Array.from({ length: 40 }, (_, i) => [i, 'x'.repeat(1000)])) },
      /bytes, and the limit is 32768/,
    ],
  ])('is refused with %s', async (_, service, options, message) => {
    const { open } = await scene()
    const { registry } = await open('near')
    const refused = registry.register(service, options as never)
    await expect(refused).rejects.toThrowError(message)
    await expect(refused).rejects.toMatchObject({ code: 'invalid-argument' })
  })

  it('keeps its state after an invalid update', async () => {
    const { open } = await scene()
    const { registry } = await open('near')
    const me = await registry.register('s', { tags: ['a'] })
    await expect(me.update({ weight: Number.NaN })).rejects.toThrowError(/weight is NaN/)
    await expect(me.report('fine' as never)).rejects.toThrowError(/status is "fine"/)
    expect(() => me.reportLoad(-1)).toThrowError(/load is -1/)
    expect(await registry.find('s')).toMatchObject([{ tags: ['a'], status: 'passing' }])
  })
})

describe('what others write', () => {
  it.each([
    'not json',
    '[]',
    'null',
    '{"weight":"heavy"}',
    '{"check":{"url":"http://169.254.169.254/"}}',
    `{"tags":${JSON.stringify(Array(100).fill('a'))}}`,
  ])('into an entry, such as %s, does not hide the others', async (value) => {
    const { store, clock, open } = await scene()
    const { registry } = await open('near')
    const { lease } = (await store.grant({ holder: 'x', ttl: 60_000 })) as { lease: string }
    for (const key of ['services/s/bad', 'services/s/deeper/still']) {
      await store.claim({ lease, claims: [{ key, value }] })
    }
    await store.claim({ lease, claims: [{ key: 'health/s/good', value }] })
    await registry.register('s', { id: 'good' })
    const watch = registry.watch('s')
    await clock.advance(10)
    await watch.ready
    expect(watch.instances.map(({ id }) => id)).toEqual(['good'])
    expect((await registry.find('s')).map(({ id }) => id)).toEqual(['good'])
  })
})
