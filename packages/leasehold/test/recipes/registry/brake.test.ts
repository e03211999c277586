import { describe, expect, it } from 'vitest'
import { type CheckChange, Leasehold, type Probe, type Registration } from '../../../src/index.ts'
import { Brake, brakeLimits } from '../../../src/recipes/index.ts'
import { testStore } from '../../../src/testing/index.ts'
import { FaultyStore } from '../../client/faulty-store.ts'

const MINUTE = 60_000

describe('a brake', () => {
  it('removes the first at once and delays those beyond the share', () => {
    const brake = new Brake(brakeLimits({}))
    const results = Array.from({ length: 30 }, (_, i) => brake.lose(`i${i}`, 0, 99 - i))
    // 15 of 100 are removed; the sixteenth exceeds 15 %.
    expect(results.slice(0, 15)).toEqual(Array(15).fill(undefined))
    expect(results.slice(15)).toEqual(Array(15).fill(2 * MINUTE))
  })

  it('needs a minimum: two of three are not a mass eviction', () => {
    const brake = new Brake(brakeLimits({}))
    expect([brake.lose('a', 0, 2), brake.lose('b', 0, 1)]).toEqual([undefined, undefined])
    expect(brake.lose('c', 0, 0)).toBe(2 * MINUTE)
  })

  it('does not delay slow losses', () => {
    const brake = new Brake(brakeLimits({}))
    for (let i = 0; i < 100; i++) expect(brake.lose(`i${i}`, i * 10_000, 100)).toBeUndefined()
  })

  it('forgets losses after its window, and recovered instances at once', () => {
    const brake = new Brake(brakeLimits({ window: '1m' }))
    for (const id of ['a', 'b', 'c']) brake.lose(id, 0, 5)
    expect(brake.isOn(59_999, 5)).toBe(true)
    expect(brake.isOn(60_000, 5)).toBe(false)
    for (const id of ['a', 'b', 'c']) brake.lose(id, 100_000, 5)
    brake.forgive('b')
    expect(brake.isOn(100_000, 5)).toBe(false)
  })

  it('counts an instance that is lost repeatedly once', () => {
    const brake = new Brake(brakeLimits({}))
    for (let i = 0; i < 50; i++) expect(brake.lose('flaky', i, 10)).toBeUndefined()
  })
})

/** Ten instances in a process that can be disconnected, and a watcher. */
async function fleet(options: { readonly probe?: Probe; readonly count?: number } = {}) {
  const { store, clock } = testStore()
  const link = new FaultyStore(store, clock)
  const far = await Leasehold.open(link, { clock, holder: 'far' })
  const near = await Leasehold.open(store, { clock, holder: 'near' })
  const check = options.probe && ({ tcp: true, every: '5s', down: 1, up: 1 } as const)
  for (let i = 0; i < (options.count ?? 10); i++) {
    const address = `h${i}:8080`
    await far.registry.register('s', { id: `i${i}`, address, check, ttl: '10s' })
  }
  const watch = near.registry.watch('s')
  const events: CheckChange[] = []
  if (options.probe) {
    near.registry.checker({ probe: options.probe }).on('changed', (change) => events.push(change))
  }
  await clock.advance(10)
  await watch.ready
  const count = (status: string) => watch.all.filter((one) => one.status === status).length
  return { store, clock, link, far, near, watch, count, events }
}

describe('when many vanish at once, discovery', () => {
  it('keeps showing most of them as lapsed, on request', async () => {
    const { clock, link, watch, count } = await fleet()
    link.freeze()
    await clock.advance(15_000)
    // Two of ten are removed as usual. The rest would be a mass eviction.
    expect([count('passing'), count('lapsed'), watch.all.length]).toEqual([0, 8, 8])
    expect(watch.braking).toBe(true)
    expect(watch.instances).toEqual([])
    expect(watch.pick()).toBeUndefined()
    expect(watch.pick('round-robin', { orUnhealthy: true })).toMatchObject({ status: 'lapsed' })
  })

  it('shows them all again when they return', async () => {
    const { clock, link, watch, count } = await fleet()
    link.freeze()
    await clock.advance(15_000)
    link.thaw()
    await clock.advance(10_000)
    expect([count('passing'), count('lapsed')]).toEqual([10, 0])
    expect(watch.braking).toBe(false)
  })

  it('does not get stuck: lost instances are removed in time, also a second time', async () => {
    // Some registries stay in self-preservation forever once most instances are gone.
    const { clock, link, near, watch } = await fleet()
    link.freeze()
    await clock.advance(15_000)
    expect(watch.all).toHaveLength(8)
    await clock.advance(2 * MINUTE)
    expect([watch.all.length, watch.braking]).toEqual([0, false])
    const { registry } = near
    const small = []
    for (let i = 0; i < 4; i++) small.push(await registry.register('s', { id: `n${i}` }))
    await clock.advance(10)
    expect(watch.instances).toHaveLength(4)
    for (const one of small) await one.release()
    await clock.advance(10)
    expect(watch.all).toEqual([])
  })

  it('does not extend the delay of earlier losses because of later ones', async () => {
    const { store, clock, link, watch } = await fleet({ count: 20 })
    link.freeze()
    await clock.advance(15_000)
    expect(watch.all.length).toBeGreaterThan(10)
    const first = new Set(watch.all.map(({ id }) => id))
    for (let i = 0; i < 12; i++) {
      const mortal = new FaultyStore(store, clock)
      const { registry } = await Leasehold.open(mortal, { clock })
      for (const id of ['a', 'b', 'c', 'd'])
        await registry.register('s', { id: `${id}${i}`, ttl: '2s' })
      mortal.freeze()
      await clock.advance(10_000)
      expect(watch.braking).toBe(true)
    }
    expect(watch.all.filter(({ id }) => first.has(id))).toEqual([])
    await clock.advance(2 * MINUTE)
    expect(watch.all).toEqual([])
  })

  it('does not delay released or revoked instances, however many', async () => {
    const { clock, store, near, watch } = await fleet({ count: 0 })
    const all = []
    for (let i = 0; i < 20; i++) all.push(await near.registry.register('s', { id: `i${i}` }))
    await clock.advance(10)
    expect(watch.instances).toHaveLength(20)
    for (const one of all.slice(0, 10)) await one.release()
    for (const one of all.slice(10)) await store.revoke({ target: { lease: one.lease! } })
    await clock.advance(10)
    expect(watch.all).toEqual([])
  })

  it('never delays the store: keys of lapsed instances and all locks are free at once', async () => {
    const { clock, link, far, near, watch } = await fleet()
    await far.lock('exclusive', { ttl: '10s' })
    link.freeze()
    await clock.advance(15_000)
    expect(watch.braking).toBe(true)
    expect((await near.tryLock('exclusive')).lock?.held).toBe(true)
    const taken = await near.registry.register('s', { id: 'i9', wait: 0, tags: ['new'] })
    await clock.advance(10)
    expect(watch.instances).toMatchObject([{ id: 'i9', tags: ['new'], token: taken.token }])
    expect(await near.registry.find('s')).toHaveLength(1)
  })

  it('drops dead instances: their leases ended and their checks fail', async () => {
    const dead = new Set<string>()
    const { clock, link, watch, count } = await fleet({
      probe: async ({ host }) =>
        dead.has(host)
          ? { status: 'critical', note: 'the connection was refused' }
          : { status: 'passing', note: '' },
    })
    await clock.advance(20_000)
    expect(count('passing')).toBe(10)
    link.freeze()
    await clock.advance(8000)
    // Four of the ten have died; the rest are only disconnected from the store.
    for (const host of ['h4', 'h5', 'h6', 'h7']) dead.add(host)
    await clock.advance(8000)
    const left = watch.all.map(({ id }) => id)
    expect(left.filter((id) => ['i4', 'i5', 'i6', 'i7'].includes(id))).toEqual([])
    expect(left.length).toBeGreaterThanOrEqual(4)
    expect(count('lapsed')).toBe(left.length)
  })

  it('delays nothing with brake: false', async () => {
    const { clock, link, near } = await fleet()
    const bare = near.registry.watch('s', { brake: false })
    await clock.advance(10)
    link.freeze()
    await clock.advance(15_000)
    expect(bare.all).toEqual([])
  })
})

describe('when the checks of many fail at once, a checker', () => {
  it('delays most of it, as if its own connection were broken', async () => {
    let isBroken = false
    const { clock, watch, count, events } = await fleet({
      probe: async () =>
        isBroken ? { status: 'critical', note: 'unreachable' } : { status: 'passing', note: '' },
    })
    await clock.advance(20_000)
    isBroken = true
    await clock.advance(20_000)
    expect([count('critical'), count('warning')]).toEqual([2, 8])
    expect(watch.instances).toHaveLength(8)
    expect(events.filter(({ held }) => held)).toHaveLength(8)
    expect(watch.instances[0]?.note).toBe(
      'its check fails (unreachable), but so do many others: delayed',
    )
    isBroken = false
    await clock.advance(20_000)
    expect(count('passing')).toBe(10)
  })

  it('does not delay it forever', async () => {
    const { clock, watch, count } = await fleet({
      probe: async () => ({ status: 'critical', note: 'unreachable' }),
    })
    await clock.advance(20_000)
    expect(count('warning')).toBe(8)
    await clock.advance(2 * MINUTE)
    expect(count('critical')).toBe(10)
    expect(watch.pick()).toBeUndefined()
    await clock.advance(60 * MINUTE)
    expect(count('critical')).toBe(10)
  })

  it('delays nothing once the leases have ended too', async () => {
    const { clock, link, watch, count } = await fleet({
      probe: async () => ({ status: 'critical', note: 'unreachable' }),
    })
    await clock.advance(20_000)
    expect(count('warning')).toBe(8)
    link.freeze()
    await clock.advance(16_000)
    expect(watch.all).toEqual([])
  })

  it('revokes no lease during the delay, and does so afterwards', async () => {
    const { store, clock } = testStore()
    const leasehold = await Leasehold.open(store, { clock })
    const { registry } = leasehold
    const check = { tcp: true, every: '5s', down: 1, onCritical: 'revoke' } as const
    const all: Registration[] = []
    for (let i = 0; i < 10; i++) {
      all.push(await registry.register('s', { id: `i${i}`, address: `h${i}:8080`, check }))
    }
    const checker = registry.checker({
      probe: async () => ({ status: 'critical', note: 'unreachable' }),
    })
    const present = () => all.filter(({ state }) => state === 'present').length
    await clock.advance(30_000)
    expect(present()).toBe(8)
    await clock.advance(2.5 * MINUTE)
    expect(present()).toBe(0)
    await checker.close()
  })
})
