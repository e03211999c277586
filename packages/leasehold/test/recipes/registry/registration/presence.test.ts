import { describe, expect, it } from 'vitest'
import { Leasehold, LeaseholdError, type LeaseholdOptions } from '../../../../src/index.ts'
import { testStore } from '../../../../src/testing/index.ts'
import { FaultyStore } from '../../../client/faulty-store.ts'
import { changedStore } from '../../../setup/changed-store.ts'

const code = (name: string) => expect.objectContaining({ code: name })

async function scene(options: LeaseholdOptions = {}) {
  const { store, clock } = testStore()
  const link = new FaultyStore(store, clock)
  const far = await Leasehold.open(link, { clock, holder: 'far', callTimeout: '1s', ...options })
  const near = await Leasehold.open(store, { clock, holder: 'near' })
  const events: unknown[] = []
  far.on('recipe-event', ({ event, level, key, token, recipe }) => {
    events.push({ event, level, key, token, recipe })
  })
  const find = () => near.registry.find('s', { status: 'any' })
  return { store, clock, link, far, near, events, find }
}

describe('a registration', () => {
  it('has a lease of 15 s with labels', async () => {
    const { store, far } = await scene()
    const me = await far.registry.register('s', { id: 'i' })
    const { lease } = await store.read({ lease: me.lease! })
    expect(lease).toMatchObject({ ttl: 15_000, labels: { service: 's', instance: 'i' } })
    expect(lease?.parent).toBeUndefined()
    expect([me.state, me.key, me.id]).toEqual(['present', 'services/s/i', 'i'])
    const nameless = await far.registry.register('s', {})
    expect(nameless.id).toMatch(/^\S{12}$/)
    await expect(far.registry.register('s', null as never)).rejects.toThrowError(
      /has no description/,
    )
    await expect(far.registry.register('s', 5 as never)).rejects.toThrowError(/has no description/)
  })

  it('publishes its description, as a whole or in parts', async () => {
    const { far, find } = await scene()
    const me = await far.registry.register('s', { id: 'i' })
    const changes = {
      ...{ address: 'a:1', endpoints: { m: 'b:2' }, capabilities: ['c'], tags: ['t'] },
      ...{ metadata: { k: 'v' }, weight: 2, zone: 'z', check: { ttl: '1h' } },
    } as const
    for (const [name, value] of Object.entries(changes)) await me.update({ [name]: value })
    const { check: _, ...shown } = changes
    expect(await find()).toMatchObject([shown])
    expect(me.description.check).toMatchObject({ ttl: 3_600_000 })
    // An undefined field is removed; a missing field stays.
    await me.update({ zone: undefined, weight: 3 })
    expect(me.description).toMatchObject({ ...shown, zone: undefined, weight: 3 })
    for (const wrong of [null, 5, undefined]) {
      await expect(async () => me.update(wrong as never)).rejects.toThrowError(/object/)
    }
    await me.maintenance(true)
    expect(await find()).toMatchObject([{ status: 'maintenance', note: undefined }])
  })

  it('writes a report if it changed, or after a third of the ttl', async () => {
    const { store, clock, far } = await scene()
    const me = await far.registry.register('s', { id: 'i', check: { ttl: '30s' } })
    const written = async () => (await store.read({ prefix: 'services/' })).revision
    const writes = async (...report: Parameters<typeof me.report>) => {
      const before = await written()
      await me.report(...report)
      return (await written()) > before
    }
    expect(await writes('passing')).toBe(true)
    expect(await writes('passing')).toBe(false)
    expect(await writes('passing', 'a note')).toBe(true)
    expect(await writes('warning', 'a note')).toBe(true)
    await clock.advance(9999)
    expect(await writes('warning', 'a note')).toBe(false)
    await clock.advance(1)
    expect(await writes('warning', 'a note')).toBe(true)
    expect(me.description.report).toEqual({ status: 'warning', note: 'a note', count: 4 })
    await me.update({ check: undefined })
    await clock.advance(600_000)
    expect(await writes('warning', 'a note')).toBe(false)
  })

  it('publishes its load once per second, and not after its end', async () => {
    const { clock, far, find, link } = await scene()
    const me = await far.registry.register('s', { id: 'i' })
    const load = async () => (await find())[0]?.load
    me.reportLoad(1)
    await clock.advance(0)
    expect(await load()).toBe(1)
    await clock.advance(400)
    me.reportLoad(2)
    me.reportLoad(3)
    await clock.advance(599)
    expect(await load()).toBe(1)
    await clock.advance(1)
    expect(await load()).toBe(3)
    await clock.advance(5000)
    me.reportLoad(4)
    await clock.advance(0)
    expect(await load()).toBe(4)
    me.reportLoad(5)
    await me.release()
    const { length } = link.calls
    me.reportLoad(6)
    await clock.advance(60_000)
    expect(link.calls).toHaveLength(length)
  })
})

describe('a presence', () => {
  it('that was released publishes nothing, and reports no event', async () => {
    const { clock, far, find, events } = await scene()
    const me = await far.registry.register('s', { id: 'i' })
    const ended: unknown[] = []
    me.on('ended', (event) => ended.push(event))
    await me.release()
    await me.release()
    await clock.advance(60_000)
    expect([me.state, me.signal.aborted, ended, events]).toEqual(['ended', false, [], []])
    expect(await find()).toEqual([])
    await expect(me.update({ weight: 2 })).rejects.toThrowError(code('lost'))
    await expect(me.update({ weight: 2 })).rejects.toThrowError(/it has ended/)
  })

  it('leaves its block although the store does not answer', async () => {
    const { clock, far, link } = await scene()
    const leave = async () => {
      await using _ = await far.registry.register('s', { id: 'i' })
      link.fault = (call) => ({ error: new LeaseholdError('forbidden', call) })
    }
    const leaving = leave()
    await clock.advance(60_000)
    await leaving
  })

  it('reports when it is absent and when it returned, to listeners and as events', async () => {
    const { clock, link, far, events } = await scene()
    const me = await far.registry.register('s', { id: 'i', ttl: '5s' })
    const before = me.token
    const reported: unknown[] = []
    me.on('absent', ({ error }) => reported.push(error.reason))
    me.on('returned', ({ token }) => reported.push(token))
    link.freeze()
    await clock.advance(6000)
    expect(reported).toEqual(['unreachable'])
    await expect(me.update({ weight: 2 })).rejects.toThrowError(/published when it returns/)
    link.thaw()
    await clock.advance(10_000)
    expect(reported).toEqual(['unreachable', me.token])
    const common = { recipe: 'registry', key: 'services/s/i' }
    expect(events).toEqual([
      { ...common, event: 'absent', level: 'warn', token: before },
      { ...common, event: 'returned', level: 'info', token: me.token },
    ])
  })

  it('that was revoked says by whom, to listeners, in its signal and as an event', async () => {
    const { store, clock, far, events } = await scene()
    const me = await far.registry.register('s', { id: 'i' })
    const { token } = me
    const reported: unknown[] = []
    me.on('ended', ({ error }) => reported.push(error))
    await store.revoke({ target: { lease: me.lease! }, by: 'ada', why: 'a bad one' })
    await clock.advance(1000)
    expect(reported).toMatchObject([
      { code: 'lost', reason: 'revoked', by: 'ada', why: 'a bad one' },
    ])
    expect(me.signal.reason).toBe(reported[0])
    const common = { recipe: 'registry', key: 'services/s/i' }
    expect(events).toEqual([{ ...common, event: 'ended', level: 'warn', token }])
  })

  it.each(['invalid-argument', 'limit-exceeded', 'unsupported'] as const)(
    'does not return if the store says %s',
    async (refusal) => {
      const { clock, link, far } = await scene()
      const me = await far.registry.register('s', { id: 'i', ttl: '5s' })
      link.fault = (call) =>
        call === 'grant' ? { error: new LeaseholdError(refusal, 'no') } : undefined
      link.freeze()
      await clock.advance(20_000)
      link.thaw()
      await clock.advance(30_000)
      expect(me.state).toBe('ended')
      expect(me.signal.reason).toMatchObject({ code: refusal })
      const grants = link.count('grant')
      await clock.advance(60_000)
      expect(link.count('grant')).toBe(grants)
    },
  )

  it('keeps trying to return otherwise, with growing backoff', async () => {
    const random = { next: () => 1, id: () => 'an id of twelve characters' }
    const { clock, link, far, find } = await scene({ random })
    const me = await far.registry.register('s', { id: 'i', ttl: '5s' })
    const tries: number[] = []
    link.fault = (call) => {
      if (call !== 'grant') return undefined
      tries.push(clock.now())
      return { error: new LeaseholdError('forbidden', 'not now') }
    }
    link.freeze()
    await clock.advance(20_000)
    link.thaw()
    tries.splice(0)
    await clock.advance(60_000)
    expect(me.state).toBe('absent')
    const rests = tries.slice(1).map((time, at) => time - tries[at]!)
    const doubling = rests.slice(-10)
    expect(Math.max(...doubling)).toBe(5000)
    expect([...rests].sort((a, b) => a - b)).toEqual(rests)
    link.fault = () => undefined
    await clock.advance(5000)
    expect(me.state).toBe('present')
    expect(await find()).toMatchObject([{ token: me.token }])
    // The next failure starts with a short backoff again.
    const { length } = tries
    link.fault = (call) => {
      if (call === 'grant') tries.push(clock.now())
      return { error: new LeaseholdError('forbidden', 'not now') }
    }
    await clock.advance(30_000)
    expect(tries[length + 1]! - tries[length]!).toBeLessThan(200)
  })

  it('that is released during its return does not stay', async () => {
    const { clock, link, far, find } = await scene()
    const me = await far.registry.register('s', { id: 'i', ttl: '5s' })
    link.freeze()
    await clock.advance(20_000)
    link.fault = (call) => (call === 'grant' ? { back: 300 } : undefined)
    link.thaw()
    await clock.advance(100)
    await me.release()
    link.fault = () => undefined
    await clock.advance(30_000)
    expect(me.state).toBe('ended')
    expect(await find()).toEqual([])
  })

  it('publishes changes made during its claim', async () => {
    const { clock, link, far, find } = await scene()
    const me = await far.registry.register('s', { id: 'i', ttl: '5s' })
    link.freeze()
    await clock.advance(20_000)
    link.fault = (call) => (call === 'grant' || call === 'claim' ? { back: 300 } : undefined)
    link.thaw()
    await clock.advance(100)
    await me.update({ tags: ['new'] }).catch(() => {})
    await clock.advance(20_000)
    expect(me.state).toBe('present')
    expect(await find()).toMatchObject([{ tags: ['new'] }])
  })

  it('retries an unanswered publish until the store answers', async () => {
    const { clock, link, far, find } = await scene()
    const me = await far.registry.register('s', { id: 'i', ttl: '1h' })
    link.fault = (call) => (call === 'update' ? { lost: 'request' } : undefined)
    const failed = me.update({ tags: ['new'] }).catch((error) => error.code)
    await clock.advance(60_000)
    expect(await failed).toBe('unknown-outcome')
    expect(await find()).toMatchObject([{ tags: [] }])
    link.fault = () => undefined
    await clock.advance(20_000)
    expect(await find()).toMatchObject([{ tags: ['new'] }])
    const { length } = link.calls
    await clock.advance(60_000)
    expect(link.calls.slice(length)).not.toContain('update')
  })

  it('does not retry a refused publish', async () => {
    const { clock, link, far } = await scene()
    const me = await far.registry.register('s', { id: 'i', ttl: '1h' })
    link.fault = (call) =>
      call === 'update' ? { error: new LeaseholdError('forbidden', 'no') } : undefined
    await expect(me.update({ tags: ['new'] })).rejects.toThrowError(code('forbidden'))
    const updates = link.count('update')
    await clock.advance(60_000)
    expect(link.count('update')).toBe(updates)
  })
})

describe('a node', () => {
  it('has a lease of 15 s with a label', async () => {
    const { store, far } = await scene()
    const node = await far.registry.node('n', { address: 'a:1' })
    const { lease } = await store.read({ lease: node.lease! })
    expect(lease).toMatchObject({ ttl: 15_000, labels: { node: 'n' } })
    expect([node.key, node.id]).toEqual(['nodes/n', 'n'])
  })

  it.each([
    ['a/b', {}, /^id /],
    ['n', 5, /^options /],
    ['n', { address: '' }, /^address /],
    ['n', { address: 'a'.repeat(513) }, /^address /],
    ['n', { metadata: { a: 5 } }, /^metadata\.a /],
    ['n', { metadata: { a: 'm'.repeat(1025) } }, /^metadata\.a /],
    ['n', { onRevoked: 'sulk' }, /^onRevoked /],
  ])('is refused: %s %j', async (id, options, message) => {
    const { far } = await scene()
    await expect(far.registry.node(id, options as never)).rejects.toThrowError(message)
  })

  it('accepts no registration while it is absent', async () => {
    const { clock, link, far } = await scene()
    const node = await far.registry.node('n', { ttl: '5s' })
    link.freeze()
    await clock.advance(20_000)
    await expect(node.register('s', {})).rejects.toThrowError(code('lost'))
    await node.release().catch(() => {})
    await expect(node.register('s', {})).rejects.toThrowError(/ended/)
  })

  it('ends its services itself if the store has no child leases', async () => {
    const { store, clock } = testStore()
    const plain = changedStore(store, {
      guarantees: { ...store.guarantees, childLeases: false },
    })
    const { registry } = await Leasehold.open(plain, { clock })
    const [one, other] = [await registry.node('one'), await registry.node('other')]
    const kept = await one.register('s', { id: 'kept' })
    const gone = await one.register('s', { id: 'gone' })
    await other.register('s', { id: 'elsewhere' })
    expect((await store.read({ lease: kept.lease! })).lease?.parent).toBeUndefined()
    await gone.release()
    await one.register('s', { id: 'later' })
    await store.revoke({ target: { lease: one.lease! } })
    await clock.advance(100)
    expect((await registry.find('s')).map(({ id }) => id)).toEqual(['elsewhere'])
    await other.release()
    await clock.advance(100)
    expect(await registry.find('s')).toEqual([])
  })
})
