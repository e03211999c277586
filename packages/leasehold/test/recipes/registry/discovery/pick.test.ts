import { describe, expect, it } from 'vitest'
import { Leasehold, type PickStrategy, type RegisterOptions } from '../../../../src/index.ts'
import type { Instance } from '../../../../src/recipes/index.ts'
import { SeededRandom, testStore } from '../../../../src/testing/index.ts'

async function watching(specs: readonly RegisterOptions[]) {
  const { store, clock } = testStore()
  const leasehold = await Leasehold.open(store, { clock, random: new SeededRandom(7) })
  const registrations = []
  for (const spec of specs) registrations.push(await leasehold.registry.register('s', spec))
  const watch = leasehold.registry.watch('s')
  await clock.advance(10)
  await watch.ready
  return { watch, clock, registrations, leasehold }
}

/** How often each was picked. */
function counts(times: number, pick: () => Instance | undefined): Record<string, number> {
  const result: Record<string, number> = {}
  for (let i = 0; i < times; i++) {
    const id = pick()?.id ?? 'none'
    result[id] = (result[id] ?? 0) + 1
  }
  return result
}

describe('pick', () => {
  it('goes round-robin', async () => {
    const { watch } = await watching([{ id: 'a' }, { id: 'b' }, { id: 'c' }])
    expect([1, 2, 3, 4].map(() => watch.pick()?.id)).toEqual(['a', 'b', 'c', 'a'])
  })

  it('takes the lowest load per weight, and alternates between equals', async () => {
    const { watch, registrations, clock } = await watching([
      { id: 'a' },
      { id: 'b', weight: 10 },
      { id: 'c' },
    ])
    expect(counts(6, () => watch.pick('least-loaded'))).toEqual({ a: 2, b: 2, c: 2 })
    for (const [i, load] of [3, 20, 5].entries()) registrations[i]!.reportLoad(load)
    await clock.advance(2000)
    expect(watch.pick('least-loaded')?.id).toBe('b')
  })

  it('takes the less loaded of two random ones, so the most loaded of three gets none', async () => {
    const { watch, registrations, clock } = await watching([{ id: 'a' }, { id: 'b' }, { id: 'c' }])
    for (const [i, load] of [1, 2, 3].entries()) registrations[i]!.reportLoad(load)
    await clock.advance(2000)
    const picked = counts(3000, () => watch.pick('two-choices'))
    expect(picked['c']).toBeUndefined()
    expect(picked['a']).toBeGreaterThan(1850)
    expect(picked['b']).toBeGreaterThan(850)
    const two = await watching([{ id: 'a' }, { id: 'b' }])
    expect(counts(1000, () => two.watch.pick('two-choices'))['a']).toBeLessThan(600)
  })

  it('takes them in proportion to their weights, and none of weight 0', async () => {
    const { watch } = await watching([
      { id: 'a', weight: 1 },
      { id: 'b', weight: 3 },
      { id: 'z', weight: 0 },
    ])
    const picked = counts(4000, () => watch.pick('weighted'))
    expect(picked['b']! / picked['a']!).toBeGreaterThan(2.6)
    expect(picked['b']! / picked['a']!).toBeLessThan(3.4)
    expect(picked['z']).toBeUndefined()
    const drained = await watching([{ id: 'z', weight: 0 }])
    expect(drained.watch.pick('weighted')?.id).toBe('z')
  })

  it('takes the zone first, and others only if it is empty', async () => {
    const { watch, registrations, clock } = await watching([
      { id: 'a', zone: 'x' },
      { id: 'b', zone: 'x' },
      { id: 'c', zone: 'y' },
    ])
    const here = () => watch.pick('zone-first', { zone: 'y' })?.id
    expect([here(), here(), here()]).toEqual(['c', 'c', 'c'])
    await registrations[2]!.report('critical')
    await clock.advance(10)
    expect([here(), here()].sort()).toEqual(['a', 'b'])
  })

  it('never takes an unhealthy one, unless none is healthy and that was allowed', async () => {
    const { watch, registrations, clock } = await watching([{ id: 'a' }, { id: 'b' }, { id: 'c' }])
    await registrations[0]!.report('critical')
    await registrations[1]!.maintenance(true)
    await clock.advance(10)
    const any = { orUnhealthy: true, key: 'k', zone: 'z' }
    for (const strategy of ['round-robin', 'consistent-hash', 'weighted'] as const) {
      expect(counts(20, () => watch.pick(strategy, any))).toEqual({ c: 20 })
    }
    await registrations[2]!.report('critical')
    await clock.advance(10)
    expect(counts(20, () => watch.pick())).toEqual({ none: 20 })
    expect(counts(20, () => watch.pick('round-robin', any))).toEqual({ a: 10, c: 10 })
    await registrations[0]!.release()
    await registrations[2]!.release()
    await clock.advance(10)
    expect(watch.pick('round-robin', any)).toBeUndefined()
  })

  it.each([
    [
      'an unknown strategy',
      'fastest',
      {},
      /strategy is "fastest": it must be one of "round-robin"/,
    ],
    ['a hash without a key', 'consistent-hash', {}, /key is undefined: .* 'consistent-hash' needs/],
    [
      'a zone that is not named',
      'zone-first',
      {},
      /zone is undefined: .* 'zone-first' needs a string/,
    ],
  ])('refuses %s, even if there is nothing to pick', async (_, strategy, options, message) => {
    const { watch, leasehold } = await watching([])
    expect(() => watch.pick(strategy as PickStrategy, options)).toThrowError(message)
    const wrong = { strategy: 'fastest' as PickStrategy }
    expect(() => leasehold.registry.watch('s', wrong)).toThrowError(/"fastest"/)
  })
})
