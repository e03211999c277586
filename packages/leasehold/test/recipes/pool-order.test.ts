import { describe, expect, it } from 'vitest'
import { conditionsOf } from '../../src/recipes/pool/definition/where.ts'
import { forecast } from '../../src/recipes/pool/schedule/forecast.ts'
import {
  costOf,
  countSuitable,
  guaranteedShares,
  holdings,
  type PoolState,
  schedule,
  scheduleAll,
} from '../../src/recipes/pool/schedule/schedule.ts'
import { expectation, observed } from '../../src/recipes/pool/usage/hold-times.ts'
import { EMPTY_RECORD, type HoldTimes } from '../../src/recipes/pool/usage/usage.ts'
import { HOUR, permit, poolState, waiter } from './pool-state.ts'

const order = (state: PoolState) => scheduleAll(state).map(({ waiter }) => waiter.token)

describe('the order of the line', () => {
  it('goes by what each tenant has used for its weight', () => {
    const line = [waiter(1, 'x'), waiter(2, 'y')]
    expect(order(poolState(line))).toEqual([1, 2])
    expect(order(poolState(line, [], {}, { x: 1 }))).toEqual([2, 1])
    const tenants = { x: { weight: 4 }, y: { weight: 1 } }
    expect(order(poolState(line, [], { tenants }, { x: 3 * HOUR, y: HOUR }))).toEqual([1, 2])
    expect(order(poolState(line, [], { tenants }, { x: 5 * HOUR, y: HOUR }))).toEqual([2, 1])
  })

  it('puts a tenant first that holds less than its guaranteed share, whatever it used', () => {
    const line = [waiter(1, 'x'), waiter(2, 'y')]
    const held = [permit(9, 'x', ['g0'])]
    expect(order(poolState(line, held, {}, { y: 100 * HOUR }))).toEqual([2, 1])
  })

  it('goes by priority within a tenant, and then by who came first', () => {
    const line = [waiter(3, 'x'), waiter(1, 'x'), waiter(2, 'x', { priority: 1 })]
    expect(order(poolState(line))).toEqual([2, 1, 3])
  })

  it('takes turns between tenants: what is next in line counts as if it were held', () => {
    const line = [waiter(1, 'x'), waiter(2, 'x'), waiter(3, 'y'), waiter(4, 'y')]
    expect(order(poolState(line))).toEqual([1, 3, 2, 4])
    const short = [waiter(1, 'x', { booked: 1 }), waiter(2, 'x'), waiter(3, 'y'), waiter(4, 'y')]
    expect(order(poolState(short, [permit(9, 'x', ['g0']), permit(8, 'y', ['g1'])]))).toEqual([
      1, 3, 2, 4,
    ])
  })

  it('goes by who came first if all else is equal, in whatever order they are seen', () => {
    expect(order(poolState([waiter(2, 'y'), waiter(1, 'x')]))).toEqual([1, 2])
  })

  it('puts a tenant first while one more resource lies within its share', () => {
    const resources = ['g0', 'g1', 'g2', 'g3'].map((name) => ({ name }))
    const held = [permit(8, 'x', ['g0']), permit(9, 'y', ['g1', 'g2'])]
    const line = [waiter(1, 'y'), waiter(2, 'x', { count: 2 })]
    expect(order(poolState(line, held, { resources }, { x: 5, y: 1 }))).toEqual([2, 1])
  })

  it('does not put first what is larger than a share, unless its tenant has used the least', () => {
    const held = [permit(9, 'x', ['g0'])]
    const line = [waiter(1, 'x'), waiter(2, 'y', { count: 2 })]
    expect(order(poolState(line, held, {}, { x: 1, y: 5 }))).toEqual([1, 2])
    expect(order(poolState(line, held, {}, { x: 5, y: 1 }))).toEqual([2, 1])
  })

  it('does not put off for ever what is larger than its tenant’s share', () => {
    const line = [waiter(1, 'x'), waiter(2, 'y', { count: 2 })]
    expect(order(poolState(line, [], {}, { x: 1 }))).toEqual([2, 1])
    expect(order(poolState(line, [], {}, { y: 1 }))).toEqual([1, 2])
  })
})

describe('what a tenant is guaranteed, and holds', () => {
  it('is its weight’s part among those who hold or want something', () => {
    const tenants = { x: { weight: 1 }, y: { weight: 3 }, idle: { weight: 4 } }
    const state = poolState([waiter(1, 'y')], [permit(9, 'x', ['g0'])], { tenants })
    expect([...guaranteedShares(state)]).toEqual([
      ['x', 0.5],
      ['y', 1.5],
    ])
    const stranger = poolState([], [permit(9, 'stranger', ['g0'])], { tenants })
    expect([...guaranteedShares(stranger)]).toEqual([['stranger', 0]])
  })

  it('is in parts where resources have shares, and without what is no longer in the pool', () => {
    const resources = [{ name: 'a', shares: 4 }, { name: 'b' }]
    const occupants = [
      permit(1, 'x', ['a/0', 'a/1']),
      permit(2, 'x', ['b']),
      permit(3, 'y', ['old']),
    ]
    expect([...holdings(poolState([], occupants, { resources }))]).toEqual([
      ['x', 1.5],
      ['y', 0],
    ])
  })

  it('costs as much as it asks for of what suits', () => {
    const resources = [{ name: 'a' }, { name: 'b', shares: 4, big: true }]
    const { definition } = poolState([], [], { resources })
    expect(costOf(definition, waiter(1, 'x', { count: 2 }))).toBe(2)
    expect(costOf(definition, waiter(1, 'x', { shares: 1 }))).toBe(1)
    expect(costOf(definition, waiter(1, 'x', { shares: 2 }))).toBe(0.5)
    const where = conditionsOf('big = true')
    expect(costOf(definition, waiter(1, 'x', { shares: 1, where }))).toBe(0.25)
    expect(costOf(definition, waiter(1, 'x', { shares: 5 }))).toBe(5)
    expect(countSuitable(definition, waiter(1, 'x'))).toBe(2)
    expect(countSuitable(definition, waiter(1, 'x', { where }))).toBe(1)
    expect(countSuitable(definition, waiter(1, 'x', { shares: 2 }))).toBe(1)
    expect(countSuitable(definition, waiter(1, 'x', { shares: 5 }))).toBe(0)
  })
})

describe('what is given', () => {
  const resources = [{ name: 'a', shares: 4 }, { name: 'b', shares: 2 }, { name: 'c' }]
  const given = (state: PoolState) => schedule(state).map(({ units }) => units)

  it('are shares where the least is left, so that whole resources stay whole', () => {
    expect(given(poolState([waiter(1, 'x', { shares: 1 })], [], { resources }))).toEqual([
      ['pool/p/r/c'],
    ])
    const two = poolState([waiter(1, 'x', { shares: 2 })], [], { resources })
    expect(given(two)).toEqual([['pool/p/r/b/0', 'pool/p/r/b/1']])
    const some = [permit(9, 'y', ['a/0', 'a/1', 'a/2']), permit(8, 'y', ['c'])]
    const rest = poolState([waiter(1, 'x', { shares: 1 })], some, { resources })
    expect(given(rest)).toEqual([['pool/p/r/a/3']])
  })

  it('are whole resources in the order in which they were defined', () => {
    const all = poolState([waiter(1, 'x', { count: 2 })], [], { resources })
    expect(given(all)).toEqual([
      [0, 1, 2, 3].map((i) => `pool/p/r/a/${i}`).concat(['pool/p/r/b/0', 'pool/p/r/b/1']),
    ])
  })

  it('is nothing where nothing is free: then there is nothing to decide', () => {
    const held = [permit(8, 'y', ['g0']), permit(9, 'y', ['g1'])]
    const state = poolState([waiter(1, 'x')], held)
    expect(schedule(state)).toEqual([])
    expect(scheduleAll(state)).toMatchObject([{ units: undefined, keeps: [] }])
    const line = [waiter(1, 'x'), waiter(2, 'x'), waiter(3, 'x')]
    expect(schedule(poolState(line)).map(({ waiter: { token } }) => token)).toEqual([1, 2])
  })

  it('leaves the other shares to others', () => {
    const line = [waiter(1, 'x', { shares: 3 }), waiter(2, 'x', { shares: 1 })]
    const state = poolState(line, [], { resources: [{ name: 'a', shares: 4 }] })
    expect(given(state)).toEqual([
      [0, 1, 2].map((share) => `pool/p/r/a/${share}`),
      ['pool/p/r/a/3'],
    ])
  })

  it('is kept for nobody who is served', () => {
    expect(scheduleAll(poolState([waiter(1, 'x')]))[0]!.keeps).toEqual([])
  })

  it('is kept where something is free, and the least is missing of the whole', () => {
    const keeps = (names: string[], held: string[], shares: number[]) => {
      const parts = names.map((name, at) => ({ name, shares: shares[at]! }))
      const state = poolState([waiter(1, 'x')], [permit(9, 'y', held)], { resources: parts })
      return scheduleAll(state)[0]!.keeps
    }
    expect(keeps(['b', 'a'], ['a/0', 'b/0', 'b/1'], [3, 4])).toEqual(
      [1, 2, 3].map((share) => `pool/p/r/a/${share}`),
    )
    expect(keeps(['c', 'a'], ['c', 'a/0', 'a/1'], [1, 4])).toEqual(
      [2, 3].map((share) => `pool/p/r/a/${share}`),
    )
  })

  it('is kept where the least is missing, and no more than is needed', () => {
    const held = [permit(7, 'y', ['a/0', 'a/1']), permit(8, 'y', ['b/0']), permit(9, 'y', ['c'])]
    const state = poolState([waiter(1, 'x')], held, { resources })
    expect(scheduleAll(state)[0]).toMatchObject({ units: undefined, keeps: ['pool/p/r/b/1'] })
    const three = { count: 3 }
    expect(scheduleAll(poolState([waiter(1, 'x', three)], held, { resources }))[0]!.keeps).toEqual([
      'pool/p/r/b/1',
      'pool/p/r/a/2',
      'pool/p/r/a/3',
    ])
  })

  it('is not what was asked back for another, unless nobody did', () => {
    const preempted = [{ permit: 9, waiter: 2, keys: ['pool/p/r/g0'] }]
    const line = [waiter(1, 'x'), waiter(2, 'x')]
    expect(given({ ...poolState(line), preempted })).toEqual([['pool/p/r/g1'], ['pool/p/r/g0']])
  })
})

describe('how long each will wait', () => {
  const waits = (state: Parameters<typeof forecast>[0], now = 0) =>
    [...forecast(state, now)].map(([token, { wait, basis }]) => [token, Math.round(wait), basis])

  it('is until what was booked before is over, where nothing else is known', () => {
    const held = [permit(8, 'y', ['g0']), permit(9, 'y', ['g1'], { booked: 2 * HOUR })]
    const line = [waiter(1, 'x'), waiter(2, 'x'), waiter(3, 'x')]
    expect(waits(poolState(line, held))).toEqual([
      [1, HOUR, 'booked'],
      [2, 2 * HOUR, 'booked'],
      [3, 2 * HOUR, 'booked'],
    ])
    expect(waits(poolState(line, held), HOUR / 2)[0]).toEqual([1, HOUR / 2, 'booked'])
  })

  it('is nothing where something is free, which rests on nothing', () => {
    expect(waits(poolState([waiter(1, 'x')]))).toEqual([[1, 0, 'observed']])
  })

  it('is half as long again for what is held for as long as it was booked, or longer', () => {
    const resources = [{ name: 'g0' }]
    const held = [permit(9, 'y', ['g0'])]
    const state = poolState([waiter(1, 'x')], held, { resources })
    expect(waits(state, HOUR)).toEqual([[1, HOUR / 2, 'booked']])
    expect(waits(state, 2 * HOUR)).toEqual([[1, HOUR, 'booked']])
  })

  it('is not what was observed of a kind less than three times', () => {
    const resources = [{ name: 'g0' }]
    const records = [
      { ...EMPTY_RECORD, kinds: { k: observed(observed(undefined, 60_000), 60_000) } },
    ]
    const state = {
      ...poolState([waiter(1, 'x')], [permit(9, 'y', ['g0'])], { resources }),
      records,
    }
    expect(waits(state)).toEqual([[1, HOUR, 'booked']])
  })

  it('is what was observed of the kinds before it, where that is enough', () => {
    const resources = [{ name: 'g0' }]
    const times = [0, 1, 2].reduce<HoldTimes | undefined>((all) => observed(all, 60_000), undefined)
    const records = [{ ...EMPTY_RECORD, kinds: { k: times! } }]
    const held = [permit(9, 'y', ['g0'])]
    const minute = expectation(times)!.rest
    const line = [
      waiter(1, 'x'),
      waiter(2, 'x'),
      { ...waiter(3, 'x'), kind: 'other' },
      waiter(4, 'x'),
    ]
    const state = { ...poolState(line, held, { resources }), records }
    expect(waits(state)).toEqual([
      [1, Math.round(minute), 'observed'],
      [2, Math.round(2 * minute), 'observed'],
      [3, Math.round(3 * minute), 'observed'],
      [4, Math.round(3 * minute + HOUR), 'booked'],
    ])
  })

  it('goes by the same order as in earnest: who is given much is behind', () => {
    const resources = [{ name: 'g0' }]
    const line = [waiter(1, 'x'), waiter(2, 'x'), waiter(3, 'y')]
    const state = poolState(line, [permit(9, 'z', ['g0'])], { resources })
    expect(waits(state).map(([token]) => token)).toEqual([1, 3, 2])
  })

  it('charges tenants for how long they held something, wherever time begins', () => {
    const booked = (hours: number) => ({ booked: hours * HOUR })
    const line = [waiter(1, 'x', booked(1)), waiter(2, 'z', booked(1)), waiter(3, 'z', booked(3))]
    for (const since of [0, 1_800_000_000_000]) {
      const held = [permit(9, 'x', ['g0'], { ...booked(4), since })]
      const state = poolState(line, held, { resources: [{ name: 'g0' }] })
      expect(waits(state, since).map(([token]) => token)).toEqual([2, 3, 1])
    }
  })

  it('charges tenants for what they hold once, when it is over', () => {
    const booked = (hours: number) => ({ booked: hours * HOUR })
    const held = [permit(8, 'x', ['g0'], booked(3)), permit(9, 'z', ['g1'], booked(4))]
    const line = [
      waiter(1, 'y', booked(3)),
      waiter(2, 'x', booked(2)),
      waiter(3, 'x', booked(3)),
      waiter(4, 'z', booked(2)),
    ]
    expect(waits(poolState(line, held)).map(([token]) => token)).toEqual([1, 2, 4, 3])
  })

  it('is not foretold for those behind what never ends, nor for more than 200', () => {
    const forever = [
      permit(8, 'y', ['g0'], { booked: Infinity }),
      permit(9, 'y', ['g1'], { booked: Infinity }),
    ]
    expect(waits(poolState([waiter(1, 'x')], forever))).toEqual([])
    const many = Array.from({ length: 205 }, (_, i) => waiter(i + 1, 'x'))
    expect(waits(poolState(many, [], { resources: [{ name: 'g0' }] }))).toHaveLength(200)
  })
})
