import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  definitionOf,
  type PoolDefinition,
} from '../../../../src/recipes/pool/definition/definition.ts'
import { conditionsOf, meets } from '../../../../src/recipes/pool/definition/where.ts'
import { type Preemptible, preemptions } from '../../../../src/recipes/pool/schedule/preemption.ts'
import {
  type PoolState,
  schedule,
  scheduleAll,
  type Waiter,
} from '../../../../src/recipes/pool/schedule/schedule.ts'

const waiter = (token: number, tenant: string, more: Partial<Waiter> = {}): Waiter => ({
  token,
  tenant,
  priority: 0,
  count: 1,
  where: [],
  booked: 3600_000,
  ...more,
})

const permit = (token: number, tenant: string, index: number, more: Partial<Preemptible> = {}) => ({
  token,
  tenant,
  keys: [`pool/p/r/g${index}`],
  priority: 0,
  preemptible: true,
  cost: 1,
  ...more,
})

function poolState(
  size: number,
  waiters: readonly Waiter[],
  occupants: readonly Preemptible[] = [],
  more: Partial<PoolDefinition> = {},
): PoolState<Waiter, Preemptible> {
  const resources = Array.from({ length: size }, (_, i) => ({ name: `g${i}` }))
  const definition = definitionOf({ resources, ...more })
  return { pool: 'p', definition, waiters, occupants, usage: new Map() }
}

const served = (state: PoolState) =>
  schedule(state).flatMap(({ waiter, units }) => (units ? [[waiter.token, ...units]] : []))

describe('the schedule', () => {
  it('is the same for all clients with the same data, in any order', () => {
    const waiters = fc.array(
      fc.record({
        tenant: fc.constantFrom('x', 'y', 'z'),
        priority: fc.integer({ min: 0, max: 2 }),
        count: fc.integer({ min: 1, max: 3 }),
        shares: fc.constantFrom(undefined, 1, 2),
      }),
      { maxLength: 12 },
    )
    const usage = fc.dictionary(
      fc.constantFrom('x', 'y', 'z'),
      fc.double({ min: 0, max: 1e9, noNaN: true }),
    )
    fc.assert(
      fc.property(waiters, usage, fc.integer(), (drawn, used, seed) => {
        const queue = drawn.map((it, i) => ({ ...waiter(i + 1, it.tenant), ...it }))
        const resources = [{ name: 'a', shares: 2 }, { name: 'b', shares: 4 }, { name: 'c' }]
        const definition = definitionOf({ resources })
        const state = { pool: 'p', definition, occupants: [], usage: new Map(Object.entries(used)) }
        const shuffled = [...queue].sort((a, b) => ((a.token * seed) % 7) - ((b.token * seed) % 7))
        const one = schedule({ ...state, waiters: queue })
        expect(schedule({ ...state, waiters: shuffled })).toEqual(one)
        const units = one.flatMap((it) => it.units ?? [])
        expect(new Set(units).size).toBe(units.length)
        // The first in order gets what is free for it.
        const [first] = one
        const isGiven = first?.units !== undefined || first?.keeps.length !== 0
        expect(isGiven).toBe(true)
      }),
    )
  })

  it('skips served waiters, unknown tenants and requests that can never be served', () => {
    const tenants = { x: {}, y: {} }
    const held = { ...permit(9, 'y', 0), waiter: 1 }
    const waiters = [
      waiter(1, 'y'),
      waiter(2, 'stranger'),
      waiter(3, 'x', { count: 5 }),
      waiter(4, 'x'),
    ]
    expect(served(poolState(3, waiters, [held], { tenants }))).toEqual([[4, 'pool/p/r/g1']])
  })

  it('reserves free resources for a large request, and gives others what it cannot use', () => {
    const resources = [{ name: 'g0', big: true }, { name: 'g1', big: true }, { name: 'g2' }]
    const large = waiter(1, 'x', { count: 2, where: conditionsOf('big = true') })
    const state = poolState(3, [large, waiter(2, 'y'), waiter(3, 'y')], [permit(9, 'z', 0)], {
      resources,
    })
    expect(served(state)).toEqual([[2, 'pool/p/r/g2']])
    expect(scheduleAll(state)[0]).toMatchObject({ waiter: large, keeps: ['pool/p/r/g1'] })
  })

  it('gives a preempted resource to the waiter that asked, although another is ahead', () => {
    const waiters = [waiter(1, 'x'), waiter(2, 'y')]
    const preempted = [{ permit: 9, waiter: 2, keys: ['pool/p/r/g0'] }]
    expect(served({ ...poolState(1, waiters), preempted })).toEqual([[2, 'pool/p/r/g0']])
    expect(served(poolState(1, waiters))).toEqual([[1, 'pool/p/r/g0']])
  })
})

describe('preemptions', () => {
  const asked = (state: PoolState<Waiter, Preemptible>) =>
    [...preemptions(state)].map(([token, permits]) => [token, ...permits.map((it) => it.token)])

  it('choose permits of lower priority, the lowest and then the youngest, and no more than needed', () => {
    const permits = [
      permit(1, 'x', 0),
      permit(2, 'x', 1, { priority: 1 }),
      permit(3, 'x', 2),
      permit(4, 'x', 3, { preemptible: false }),
    ]
    expect(asked(poolState(4, [waiter(9, 'x', { priority: 1 })], permits))).toEqual([[9, 3]])
    expect(asked(poolState(4, [waiter(9, 'x', { priority: 2, count: 3 })], permits))).toEqual([
      [9, 3, 1, 2],
    ])
    expect(asked(poolState(4, [waiter(9, 'x', { priority: 2, count: 4 })], permits))).toEqual([])
    expect(asked(poolState(4, [waiter(9, 'x')], permits))).toEqual([])
  })

  it('leave another tenant its guaranteed share, whatever the priority', () => {
    const permits = [0, 1, 2, 3].map((i) => permit(i + 1, 'x', i))
    const urgent = [9, 10, 11].map((token) => waiter(token, 'y', { priority: 1000 }))
    expect(asked(poolState(4, urgent, permits))).toEqual([
      [9, 4],
      [10, 3],
    ])
  })

  it('choose nothing for a waiter that can be served', () => {
    expect(asked(poolState(2, [waiter(9, 'x', { priority: 1 })], [permit(1, 'x', 0)]))).toEqual([])
  })

  it('choose only what helps, although others come first', () => {
    const resources = [{ name: 'g0', big: true }, { name: 'g1', big: true }, { name: 'g2' }]
    const permits = [0, 1, 2].map((i) => permit(i + 1, 'x', i))
    const wants = { priority: 1, count: 2, where: conditionsOf('big = true') }
    const state = poolState(3, [waiter(9, 'x', wants)], permits, { resources })
    expect(asked(state)).toEqual([[9, 2, 1]])
  })

  it('may serve the next waiter if they are not enough for the first', () => {
    const permits = [0, 1, 2, 3].map((i) => permit(i + 1, 'x', i))
    const queue = [
      waiter(8, 'y', { priority: 5, count: 3 }),
      waiter(9, 'y', { priority: 4, count: 1 }),
    ]
    expect(asked(poolState(4, queue, permits))).toEqual([[9, 4]])
  })

  it('stay with the waiter that asked, as long as it waits', () => {
    const queue = [waiter(8, 'x', { priority: 5 }), waiter(9, 'x', { priority: 7 })]
    const permits = [permit(1, 'x', 0), permit(2, 'x', 1)]
    const before = (permit: number, waiter: number) => [{ permit, waiter, keys: [`pool/p/r/g0`] }]
    const state = poolState(2, queue, permits)
    expect(asked({ ...state, preempted: before(2, 8) })).toEqual([
      [9, 1],
      [8, 2],
    ])
    const alone = poolState(1, [waiter(9, 'x', { priority: 7 })], [permit(1, 'x', 0)])
    expect(asked({ ...alone, preempted: before(1, 5) })).toEqual([[9, 1]])
  })

  it('choose a permit for one waiter at a time', () => {
    const state = poolState(
      1,
      [waiter(8, 'x', { priority: 5 }), waiter(9, 'x', { priority: 7 })],
      [permit(1, 'x', 0)],
    )
    expect(asked(state)).toEqual([[9, 1]])
    const before = [{ permit: 1, waiter: 8, keys: ['pool/p/r/g0'] }]
    expect(asked({ ...state, preempted: before })).toEqual([[8, 1]])
  })
})

describe('conditions', () => {
  const h100 = { memory: 80, model: 'H100', spot: false }

  it.each([
    ['memory >= 40', true],
    ['memory > 80', false],
    ['memory <= 80 and model = H100', true],
    ["model == 'H100', spot = false", true],
    ['model != H100', false],
    ['cores >= 1', false],
    [{ memory: { atLeast: 40, below: 100 }, model: { oneOf: ['A100', 'H100'] } }, true],
    [{ model: { not: 'H100' } }, false],
    [{ spot: true }, false],
  ])('%j is %s of an H100 with 80 GB', (where, is) => {
    expect(meets(h100, conditionsOf(where as string))).toBe(is)
  })
})
