import { describe, expect, it } from 'vitest'
import { Leasehold } from '../../../../src/index.ts'
import { testStore } from '../../../../src/testing/index.ts'
import { changedStore } from '../../../setup/changed-store.ts'
import { BAD, MINUTE, OK, scene } from './scene.ts'

const hosts = (probes: readonly (readonly [string, number])[]) => probes.map(([host]) => host)
const ids = (count: number, prefix: string) =>
  Array.from({ length: count }, (_, at) => `${prefix}${at}`)

describe('a checker of one service', () => {
  it('watches only that service', async () => {
    const { store, clock } = testStore()
    const prefixes = new Set<string>()
    const observed = changedStore(store, {
      watch(target, observer) {
        if ('prefix' in target) prefixes.add(target.prefix)
        return store.watch(target, observer)
      },
    })
    const { registry } = await Leasehold.open(observed, { clock })
    const checker = registry.checker({ service: 's', probe: async () => OK })
    await clock.advance(100)
    expect([...prefixes].sort()).toEqual(['health/s/', 'services/s/'])
    await checker.close()
  })
})

describe('a checker that has just started', () => {
  it('probes nothing before it knows the earlier results', async () => {
    const { clock, link, probes, checking, register } = await scene()
    await register('i', { tcp: true, every: '200ms' })
    let reads = 0
    link.fault = (call) => (call === 'read' && ++reads === 1 ? { there: 900 } : undefined)
    const checker = checking({ everyMin: '100ms' })
    await clock.advance(850)
    expect([checker.active, probes]).toEqual([true, []])
    await clock.advance(300)
    expect(probes.length).toBeGreaterThan(0)
    await checker.close()
  })

  it('lets the next take over if it is closed before that', async () => {
    const { store, clock, link, checking } = await scene()
    link.fault = (call) => (call === 'read' ? { there: 900 } : undefined)
    const checker = checking()
    const reported: string[] = []
    checker.on('idle', ({ key }) => reported.push(key))
    await clock.advance(100)
    expect(checker.active).toBe(true)
    await checker.close()
    expect(reported).toEqual(['checkers/all'])
    expect((await store.read({ prefix: 'checkers/' })).keys).toEqual([])
  })

  it('continues from the results of another checker', async () => {
    const { clock, checking, register, let: letProbe, found } = await scene()
    await register('i', { tcp: true, every: '1h', down: 1, up: 3 })
    letProbe(async () => BAD)
    const first = checking()
    await clock.advance(3000)
    await first.close()
    letProbe(async () => OK)
    const second = checking()
    await clock.advance(10 * MINUTE)
    expect(await found()).toMatchObject([{ status: 'critical', note: 'bad' }])
    await second.close()
  })

  it('writes the results of another again, before its own first probe has ended', async () => {
    const { clock, checking, register, let: letProbe, found } = await scene()
    await register('i', { tcp: true, every: '1h', timeout: '1m', down: 1 })
    letProbe(async () => BAD)
    const first = checking()
    await clock.advance(3000)
    await first.close()
    letProbe(() => new Promise(() => {}))
    const second = checking()
    // The results of the first checker have expired by then.
    await clock.advance(40_000)
    expect(await found()).toMatchObject([{ status: 'critical', note: 'bad' }])
    await second.close()
  })

  it('does not continue from results of another registration', async () => {
    const { clock, checking, register, write, found, events } = await scene()
    const me = await register('i', { tcp: true, every: '1h', up: 3 })
    const of = me.token! + 1000
    await write({ 'health/s/i': JSON.stringify({ status: 'critical', note: 'bad', of }) }, 10_000)
    const checker = checking()
    await clock.advance(20_000)
    expect(await found()).toMatchObject([{ status: 'passing' }])
    expect(events).toEqual([{ service: 's', id: 'i', held: false, ...OK }])
    await checker.close()
  })
})

describe('a checker', () => {
  it('ignores entries without a check and unreadable entries', async () => {
    const { store, clock, probes, checking, entry, write } = await scene()
    const check = { tcp: true, every: '1h' }
    const lease = await write({
      'services/s/a': 'not json',
      'services/s/b': '{}',
      'services/s/c': entry('c', check),
      'services/s/d': 'not json',
      'services/s/e': '{}',
      'services/s/f/g': entry('g', check),
    })
    const checker = checking()
    await clock.advance(3000)
    expect(hosts(probes)).toEqual(['c'])
    expect((await store.read({ prefix: 'health/' })).keys).toHaveLength(1)
    await store.revoke({ target: { lease } })
    await clock.advance(10)
    expect((await store.read({ prefix: 'health/' })).keys).toEqual([])
    await checker.close()
  })

  it('waits up to a tenth longer or shorter than requested', async () => {
    for (const [random, gap] of [
      [1, 11_000],
      [0, 9000],
    ] as const) {
      const { clock, probes, checking, register } = await scene(random)
      await register('i', { tcp: true, every: '10s' })
      const checker = checking()
      await clock.advance(15_000)
      expect(probes[1]![1] - probes[0]![1]).toBeCloseTo(gap)
      await checker.close()
    }
  })

  it('reports a result that changes nothing yet without a note', async () => {
    const { clock, checking, register, let: letProbe, events } = await scene()
    await register('i', { tcp: true, every: '1h', down: 3 })
    letProbe(async () => BAD)
    const checker = checking()
    await clock.advance(3000)
    expect(events).toEqual([{ service: 's', id: 'i', held: false, ...OK }])
    await checker.close()
  })

  it('does not take a report for a probe', async () => {
    const { clock, probes, checking, register, let: letProbe, found } = await scene()
    const me = await register('i', { tcp: true, every: '1h', down: 1, up: 1 })
    letProbe(async () => BAD)
    const checker = checking()
    await clock.advance(3000)
    await me.report('warning')
    await clock.advance(3000)
    expect(probes).toHaveLength(1)
    expect(await found()).toMatchObject([{ status: 'critical', note: 'bad' }])
    await checker.close()
  })

  it('notes for a ttl check that no report came, and nothing when one does', async () => {
    const { clock, checking, register, events } = await scene()
    const me = await register('i', { ttl: '10s' })
    const checker = checking()
    await clock.advance(10_000)
    await me.report('passing')
    await clock.advance(10)
    expect(events).toMatchObject([{ status: 'critical' }, OK])
    expect(events[0]!.note).toMatch(/not report in time/)
    await checker.close()
  })
})

describe('an instance that leaves', () => {
  const check = { tcp: true, every: '1h' }

  it('is not probed again if it was released', async () => {
    const { store, clock, probes, checking, register } = await scene()
    const me = await register('i', check)
    const checker = checking({ brake: {} })
    await clock.advance(3000)
    await me.release()
    await clock.advance(3000)
    expect(hosts(probes)).toEqual(['i'])
    expect((await store.read({ prefix: 'health/' })).keys).toEqual([])
    await checker.close()
  })

  it('is probed again if its lease expired, even if another was released in the same batch', async () => {
    const { clock, link, probes, checking, register, entry, write } = await scene()
    const released = await register('released', check)
    await write({ 'services/s/expired': entry('expired', check) }, 5000)
    const checker = checking({ brake: {}, ttl: '1h' })
    await clock.advance(2000)
    expect(hosts(probes.splice(0)).sort()).toEqual(['expired', 'released'])
    link.freeze()
    await released.release()
    await clock.advance(4000)
    link.interrupt()
    link.thaw()
    await clock.advance(10_000)
    expect(hosts(probes)).toEqual(['expired'])
    await checker.close()
  })

  it('during a probe is not reported any more, without a brake', async () => {
    const { clock, probes, checking, entry, write, let: letProbe, events } = await scene()
    let answer = (_: typeof BAD) => {}
    letProbe(
      () =>
        new Promise((resolve) => {
          answer = resolve
        }),
    )
    const slow = { tcp: true, every: '10s', timeout: '10s', down: 1 }
    await write({ 'services/s/i': entry('i', slow) }, 5000)
    const checker = checking()
    await clock.advance(6000)
    expect(probes).toHaveLength(1)
    answer(BAD)
    await clock.advance(10)
    expect(events).toEqual([])
    await checker.close()
  })

  it('is not revoked after its lease has expired', async () => {
    const { clock, link, checking, entry, write, let: letProbe, events } = await scene()
    await write({ 'services/s/i': entry('i', { ...check, onCritical: 'revoke' }) }, 5000)
    const checker = checking({ brake: {} })
    await clock.advance(3000)
    letProbe(async () => BAD)
    await clock.advance(3000)
    expect(events.at(-1)).toMatchObject({ id: 'i', status: 'critical' })
    expect(link.count('revoke')).toBe(0)
    await checker.close()
  })
})

describe('the brake of a checker', () => {
  const check = { tcp: true, every: '5s', down: 1, up: 1 }

  it.each([
    [19, 2],
    [20, 3],
  ])(
    'of %i that fail removes the first %i at once: a share of the healthy ones',
    async (count, gone) => {
      const { clock, checking, entry, write, let: letProbe, events } = await scene()
      const all = ids(count, 'i')
      await write(Object.fromEntries(all.map((id) => [`services/s/${id}`, entry(id, check)])))
      // Instances of another service and those that were never healthy do not count.
      const sick = { ...check, initially: 'critical' }
      const others = ids(10, 'o')
      await write(
        Object.fromEntries([
          ...others.map((id) => [`services/t/${id}`, entry(id, check, 't')]),
          ...ids(10, 'sick').map((id) => [`services/s/${id}`, entry(id, sick)]),
        ]),
      )
      const failing = new Set(ids(10, 'sick'))
      letProbe(async (host) => (failing.has(host) ? BAD : OK))
      const checker = checking({ brake: {} })
      await clock.advance(3000)
      for (const id of all) failing.add(id)
      await clock.advance(10_000)
      const reported = events.filter(({ id, status }) => all.includes(id) && status !== 'passing')
      expect(reported.filter(({ held }) => !held)).toHaveLength(gone)
      expect(reported.filter(({ held }) => held)).toHaveLength(count - gone)
      await checker.close()
    },
  )

  it('does not count recovered instances', async () => {
    const { clock, checking, entry, write, let: letProbe, events } = await scene()
    const all = ids(10, 'i')
    await write(Object.fromEntries(all.map((id) => [`services/s/${id}`, entry(id, check)])))
    const failing = new Set(all)
    letProbe(async (host) => (failing.has(host) ? BAD : OK))
    const checker = checking({ brake: {} })
    await clock.advance(3000)
    expect(events.filter(({ held }) => held)).toHaveLength(8)
    failing.clear()
    await clock.advance(6000)
    expect(events.slice(-10)).toMatchObject(Array(10).fill({ status: 'passing', held: false }))
    failing.add('i0')
    await clock.advance(6000)
    expect(events.at(-1)).toMatchObject({ id: 'i0', status: 'critical', held: false })
    await checker.close()
  })

  it('does not count instances whose leases have ended', async () => {
    const { clock, checking, entry, write, let: letProbe, events } = await scene()
    const [mortal, others] = [ids(6, 'm'), ids(4, 'i')]
    const values = (some: readonly string[]) =>
      Object.fromEntries(some.map((id) => [`services/s/${id}`, entry(id, check)]))
    await write(values(mortal), 4000)
    await write(values(others))
    const failing = new Set<string>()
    letProbe(async (host) => (failing.has(host) ? BAD : OK))
    const checker = checking({ brake: {} })
    await clock.advance(3000)
    for (const id of mortal) failing.add(id)
    await clock.advance(2000)
    expect(events.filter(({ status }) => status === 'critical')).toHaveLength(6)
    failing.add('i0')
    await clock.advance(6000)
    expect(events.at(-1)).toMatchObject({ id: 'i0', status: 'critical', held: false })
    await checker.close()
  })

  it('ends in time, although no check is due then', async () => {
    const { clock, checking, entry, write, let: letProbe, events, probes } = await scene()
    const rare = { ...check, every: '1h' }
    const all = ids(5, 'i')
    await write(Object.fromEntries(all.map((id) => [`services/s/${id}`, entry(id, rare)])))
    letProbe(async () => BAD)
    const checker = checking({ brake: { hold: '30s' } })
    await clock.advance(30_000)
    expect(events.map(({ held }) => held)).toEqual([false, false, true, true, true])
    expect(probes).toHaveLength(5)
    await clock.advance(2000)
    expect(events.slice(5)).toMatchObject(Array(3).fill({ status: 'critical', held: false }))
    await checker.close()
  })
})
