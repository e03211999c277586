import { describe, expect, it } from 'vitest'
import type { Change } from '../../../../src/index.ts'
import { ids, MINUTE, scene } from './watch-scene.ts'

describe('find', () => {
  it('reads all pages, and sorts the instances', async () => {
    const { store, registry } = await scene()
    const { lease } = (await store.grant({ holder: 'x', ttl: MINUTE })) as { lease: string }
    const all = Array.from({ length: 2050 }, (_, at) => `i${at}`)
    for (let at = 0; at < all.length; at += 50) {
      const keys = all.slice(at, at + 50).map((id) => ({ key: `services/s/${id}`, value: '{}' }))
      await store.claim({ lease, claims: keys })
    }
    expect(ids(await registry.find('s'))).toEqual([...all].sort())
    expect(await registry.services()).toEqual(['s'])
    await expect(registry.find('a/b')).rejects.toThrowError(/^service /)
    await expect(registry.find('s', { status: 'fine' as never })).rejects.toThrowError(/^status /)
  })

  it('names every service once, in order, and none that has no instance', async () => {
    const { clock, registry } = await scene()
    for (const service of ['b', 'a', 'b', 'c']) await registry.register(service, {})
    const gone = await registry.register('0', {})
    await gone.release()
    await clock.advance(10)
    expect(await registry.services()).toEqual(['a', 'b', 'c'])
  })

  it('shows check results of the same registration only', async () => {
    const { registry, register, write } = await scene()
    const [me, other] = [await register('i'), await register('other')]
    const failing = (of: number | undefined) =>
      JSON.stringify({ status: 'critical', note: 'dead', of })
    await write('health/s/i', failing(me.token))
    await write('health/s/other', failing(me.token))
    await write('health/t/other', failing(other.token))
    expect(await registry.find('s', { status: 'any' })).toMatchObject([
      { id: 'i', status: 'critical', note: 'dead' },
      { id: 'other', status: 'passing' },
    ])
    expect(ids(await registry.find('s'))).toEqual(['other'])
    expect(ids(await registry.find('s', { status: 'critical' }))).toEqual(['i'])
  })
})

describe('a watch', () => {
  it('refuses invalid arguments', async () => {
    const { registry, watching } = await scene()
    expect(() => registry.watch('a/b')).toThrowError(/^service /)
    expect(() => registry.watch('s', 5 as never)).toThrowError(/^options /)
    expect(() => registry.watch('s', { brake: { share: 5 } })).toThrowError(/^brake\.share /)
    expect(() => registry.watch('s', { zone: 5 as never })).toThrowError(/^zone /)
    expect(() => registry.watch('s', { strategy: 'x' as never })).toThrowError(/^strategy /)
    const { watch } = await watching()
    expect(() => watch.pick('round-robin', 5 as never)).toThrowError(/^options /)
  })

  it('shows matching instances, and reports each change once, with the reason for leaving', async () => {
    const { clock, registry, register, watching } = await scene()
    const zed = await register('zed', { tags: ['t'] })
    await register('early', { tags: ['t'] })
    const { watch, changes } = await watching({ tags: ['t'] })
    expect(ids(watch.instances)).toEqual(['early', 'zed'])
    expect(ids(watch.all)).toEqual(['early', 'zed'])
    await zed.release()
    await clock.advance(10)
    changes.splice(0)
    const one = await register('one', { tags: ['t'] })
    await register('other', { tags: ['u'] })
    await registry.register('st', { id: 'elsewhere', tags: ['t'] })
    await clock.advance(10)
    await one.report('warning')
    await one.report('warning', 'twice')
    await clock.advance(10)
    expect(changes.splice(0)).toEqual([
      'one joined',
      'one changed passing warning',
      'one changed warning warning',
    ])
    expect(ids(watch.all)).toEqual(['early', 'one'])
    await one.report('critical')
    await clock.advance(10)
    expect(changes.splice(0)).toEqual(['one left critical unwanted'])
    expect([ids(watch.instances), ids(watch.all)]).toEqual([['early'], ['early', 'one']])
    await one.report('passing')
    await clock.advance(10)
    await one.update({ tags: [] })
    await clock.advance(10)
    expect(changes.splice(0)).toEqual(['one joined', 'one left passing unwanted'])
    expect(ids(watch.all)).toEqual(['early'])
    await one.update({ tags: ['t'] })
    await clock.advance(10)
    await one.release()
    await clock.advance(10)
    expect(changes).toEqual(['one joined', 'one left passing released'])
    expect(ids(watch.instances)).toEqual(['early'])
    expect(watch.braking).toBe(false)
  })

  it('shows instances in the order of their ids, whenever they came', async () => {
    const { clock, register, watching } = await scene()
    await register('b')
    const { watch } = await watching()
    expect([ids(watch.all), ids(watch.instances)]).toEqual([['b'], ['b']])
    await register('a')
    await clock.advance(10)
    expect([ids(watch.all), ids(watch.instances)]).toEqual([
      ['a', 'b'],
      ['a', 'b'],
    ])
  })

  it('reports an instance that ends together with unreadable entries', async () => {
    const { store, clock, watching } = await scene()
    const { lease } = (await store.grant({ holder: 'x', ttl: MINUTE })) as { lease: string }
    const values = { a: 'not json', b: '{}', c: 'not json' }
    const claims = Object.entries(values).map(([id, value]) => ({ key: `services/s/${id}`, value }))
    await store.claim({ lease, claims })
    const { changes } = await watching()
    await store.revoke({ target: { lease } })
    await clock.advance(10)
    expect(changes).toEqual(['b left passing revoked'])
  })

  it('drops an instance whose entry becomes unreadable', async () => {
    const { store, clock, register, watching } = await scene()
    const me = await register('i')
    const { watch, changes } = await watching()
    const value = 'not json'
    await store.update({ lease: me.lease!, key: me.key, token: me.token!, value })
    await clock.advance(10)
    expect(changes).toEqual(['i left passing unwanted'])
    expect([watch.all, watch.instances]).toEqual([[], []])
  })

  it('reports nothing twice: a result that changes nothing is not a change', async () => {
    const { clock, register, watching, write } = await scene()
    const me = await register('i')
    const { changes } = await watching()
    await write('health/s/i', JSON.stringify({ status: 'passing', note: '', of: me.token }))
    await clock.advance(10)
    expect(changes).toEqual([])
    await write('health/s/i', JSON.stringify({ status: 'warning', note: '', of: me.token }))
    await clock.advance(10)
    expect(changes).toEqual(['i changed passing warning'])
    await write('health/s/unknown', JSON.stringify({ status: 'warning', note: '', of: 1 }))
    await clock.advance(10)
    expect(changes).toHaveLength(1)
  })

  it('shows nothing before it knows the check results', async () => {
    const { clock, leasehold, farAway, register, write } = await scene()
    const me = await register('i')
    await write('health/s/i', JSON.stringify({ status: 'critical', note: '', of: me.token }))
    const far = await farAway()
    let reads = 0
    far.link.fault = (call) => (call === 'read' && ++reads === 2 ? { there: 500 } : undefined)
    const watch = far.registry.watch('s', { status: 'any' })
    const seen: string[] = []
    watch.on('joined', ({ instance }) => seen.push(instance.status))
    await clock.advance(400)
    expect([seen, watch.all, watch.live]).toEqual([[], [], false])
    // The age is that of the older view, which has no answer yet.
    expect(watch.age()).toBe(Infinity)
    await clock.advance(10_000)
    expect(seen).toEqual(['critical'])
    await leasehold.close()
  })

  it('reports nothing after it is closed, and ends with its client', async () => {
    const { clock, leasehold, register, watching } = await scene()
    const { watch, changes } = await watching()
    {
      using _ = watch
    }
    expect(watch.live).toBe(false)
    watch.close()
    await register('i')
    await clock.advance(100)
    expect([changes, watch.instances]).toEqual([[], []])
    const open = await watching()
    const reading = (async () => {
      for await (const _ of open.watch);
    })()
    await leasehold.close()
    await reading.catch(() => {})
    expect(open.watch.live).toBe(false)
  })
})

describe('a pick', () => {
  it('follows the options of the watch, unless it has its own', async () => {
    const { clock, register, watching } = await scene()
    const [a, b] = [await register('a', { zone: 'x' }), await register('b', { zone: 'y' })]
    const { watch } = await watching({ strategy: 'zone-first', orUnhealthy: true })
    expect(watch.pick(undefined, { zone: 'y' })?.id).toBe('b')
    expect(() => watch.pick()).toThrowError(/^zone /)
    expect(watch.pick('consistent-hash', { key: 'k' })).toBeDefined()
    await a.report('critical')
    await b.report('critical')
    await clock.advance(10)
    expect(watch.pick(undefined, { zone: 'y' })?.id).toBe('b')
    expect(watch.pick(undefined, { zone: 'y', orUnhealthy: false })).toBeUndefined()
    await a.maintenance(true)
    await b.maintenance(true)
    await clock.advance(10)
    expect(watch.pick(undefined, { zone: 'y' })).toBeUndefined()
  })

  it('prefers lapsed instances to critical ones', async () => {
    const { clock, register, farAway, watching } = await scene()
    const sick = await register('sick')
    const far = await farAway()
    for (let at = 0; at < 6; at++) await far.registry.register('s', { id: `i${at}`, ttl: '10s' })
    const { watch, changes } = await watching()
    await sick.report('critical')
    far.link.freeze()
    await clock.advance(15_000)
    expect(changes.filter((change) => change.includes(' left '))).toHaveLength(7)
    // Two were removed as usual. They are not shown; the others are known but not shown.
    expect(watch.all.map(({ status }) => status).sort()).toEqual([
      ...['critical', 'lapsed', 'lapsed', 'lapsed', 'lapsed'],
    ])
    for (let at = 0; at < 8; at++) {
      expect(watch.pick('round-robin', { orUnhealthy: true })?.status).toBe('lapsed')
    }
  })
})

describe('an iterator', () => {
  it('gets one step from what it knew to the current state, however much happened', async () => {
    const { clock, register, watching } = await scene()
    const [stays, goes] = [await register('stays'), await register('goes')]
    const { watch } = await watching()
    const steps = watch[Symbol.asyncIterator]()
    const next = async () => {
      const { value } = (await steps.next()) as { value: Change }
      const reason = value.type === 'left' ? ` ${value.reason}` : ''
      return `${value.instance.id} ${value.type}${reason}`
    }
    expect([await next(), await next()].sort()).toEqual(['goes joined', 'stays joined'])
    for (const weight of [2, 3, 4]) await stays.update({ weight })
    await goes.release()
    const brief = await register('brief')
    await clock.advance(10)
    await brief.release()
    await clock.advance(10)
    expect(await next()).toBe('goes left released')
    expect(await next()).toBe('stays changed')
    const later = next()
    await clock.advance(10)
    await stays.report('critical')
    await clock.advance(10)
    expect(await later).toBe('stays left unwanted')
    watch.close()
    expect(await steps.next()).toEqual({ value: undefined, done: true })
  })

  it('gets an instance that left and returned as changed', async () => {
    const { clock, register, watching } = await scene()
    const me = await register('i')
    const { watch } = await watching()
    const steps = watch[Symbol.asyncIterator]()
    await steps.next()
    await me.release()
    await clock.advance(10)
    const again = await register('i')
    await clock.advance(10)
    const { value } = (await steps.next()) as { value: Change }
    expect(value).toMatchObject({ type: 'changed', instance: { token: again.token } })
    await again.report('critical')
    await clock.advance(10)
    expect((await steps.next()).value).toMatchObject({ type: 'left', reason: 'unwanted' })
  })
})
