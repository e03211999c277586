import { describe, expect, it } from 'vitest'
import { conditionsOf } from '../../../../src/recipes/pool/definition/where.ts'
import { forecast } from '../../../../src/recipes/pool/schedule/forecast.ts'
import {
  costOf,
  countSuitable,
  guaranteedShares,
  holdings,
  type PoolState,
  schedule,
  scheduleAll,
} from '../../../../src/recipes/pool/schedule/schedule.ts'
import { expectation, observed } from '../../../../src/recipes/pool/usage/hold-times.ts'
import { EMPTY_RECORD, type HoldTimes } from '../../../../src/recipes/pool/usage/usage.ts'
import { HOUR, permit, poolState, waiter } from '../state.ts'

const order = (state: PoolState) => scheduleAll(state).map(({ waiter }) => waiter.token)

describe('the order of the queue', () => {
  it('follows the usage per weight of each tenant', () => {
    const queue = [waiter(1, 'x'), waiter(2, 'y')]
    expect(order(poolState(queue))).toEqual([1, 2])
    expect(order(poolState(queue, [], {}, { x: 1 }))).toEqual([2, 1])
    const tenants = { x: { weight: 4 }, y: { weight: 1 } }
    expect(order(poolState(queue, [], { tenants }, { x: 3 * HOUR, y: HOUR }))).toEqual([1, 2])
    expect(order(poolState(queue, [], { tenants }, { x: 5 * HOUR, y: HOUR }))).toEqual([2, 1])
  })

  it('puts a tenant first that holds less than its guaranteed share, whatever it used', () => {
    const queue = [waiter(1, 'x'), waiter(2, 'y')]
    const held = [permit(9, 'x', ['g0'])]
    expect(order(poolState(queue, held, {}, { y: 100 * HOUR }))).toEqual([2, 1])
  })

  it('follows priority within a tenant, then age', () => {
    const queue = [waiter(3, 'x'), waiter(1, 'x'), waiter(2, 'x', { priority: 1 })]
    expect(order(poolState(queue))).toEqual([2, 1, 3])
  })

  it('alternates between tenants: a scheduled request counts as held', () => {
    const queue = [waiter(1, 'x'), waiter(2, 'x'), waiter(3, 'y'), waiter(4, 'y')]
    expect(order(poolState(queue))).toEqual([1, 3, 2, 4])
    const short = [waiter(1, 'x', { booked: 1 }), waiter(2, 'x'), waiter(3, 'y'), waiter(4, 'y')]
    expect(order(poolState(short, [permit(9, 'x', ['g0']), permit(8, 'y', ['g1'])]))).toEqual([
      1, 3, 2, 4,
    ])
  })

  it('follows age if all else is equal, in any input order', () => {
    expect(order(poolState([waiter(2, 'y'), waiter(1, 'x')]))).toEqual([1, 2])
  })

  it('puts a tenant first while one more resource is within its share', () => {
    const resources = ['g0', 'g1', 'g2', 'g3'].map((name) => ({ name }))
    const held = [permit(8, 'x', ['g0']), permit(9, 'y', ['g1', 'g2'])]
    const queue = [waiter(1, 'y'), waiter(2, 'x', { count: 2 })]
    expect(order(poolState(queue, held, { resources }, { x: 5, y: 1 }))).toEqual([2, 1])
  })

  it('does not put a request larger than a share first, unless its tenant has used the least', () => {
    const held = [permit(9, 'x', ['g0'])]
    const queue = [waiter(1, 'x'), waiter(2, 'y', { count: 2 })]
    expect(order(poolState(queue, held, {}, { x: 1, y: 5 }))).toEqual([1, 2])
    expect(order(poolState(queue, held, {}, { x: 5, y: 1 }))).toEqual([2, 1])
  })

  it('does not delay a request larger than the share of its tenant forever', () => {
    const queue = [waiter(1, 'x'), waiter(2, 'y', { count: 2 })]
    expect(order(poolState(queue, [], {}, { x: 1 }))).toEqual([2, 1])
    expect(order(poolState(queue, [], {}, { y: 1 }))).toEqual([1, 2])
  })
})

describe('the guaranteed share and the holdings of a tenant', () => {
  it('is the part of its weight among the active tenants', () => {
    const tenants = { x: { weight: 1 }, y: { weight: 3 }, idle: { weight: 4 } }
    const state = poolState([waiter(1, 'y')], [permit(9, 'x', ['g0'])], { tenants })
    expect([...guaranteedShares(state)]).toEqual([
      ['x', 0.5],
      ['y', 1.5],
    ])
    const stranger = poolState([], [permit(9, 'stranger', ['g0'])], { tenants })
    expect([...guaranteedShares(stranger)]).toEqual([['stranger', 0]])
  })

  it('counts shares as fractions, without resources that left the pool', () => {
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

  it('costs as much as it asks for of suitable resources', () => {
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

describe('what a request gets', () => {
  const resources = [{ name: 'a', shares: 4 }, { name: 'b', shares: 2 }, { name: 'c' }]
  const given = (state: PoolState) => schedule(state).map(({ units }) => units)

  it('are shares of the fullest resource, so that whole resources stay whole', () => {
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

  it('is nothing if nothing is free: then nothing is decided', () => {
    const held = [permit(8, 'y', ['g0']), permit(9, 'y', ['g1'])]
    const state = poolState([waiter(1, 'x')], held)
    expect(schedule(state)).toEqual([])
    expect(scheduleAll(state)).toMatchObject([{ units: undefined, keeps: [] }])
    const queue = [waiter(1, 'x'), waiter(2, 'x'), waiter(3, 'x')]
    expect(schedule(poolState(queue)).map(({ waiter: { token } }) => token)).toEqual([1, 2])
  })

  it('leaves the other shares to others', () => {
    const queue = [waiter(1, 'x', { shares: 3 }), waiter(2, 'x', { shares: 1 })]
    const state = poolState(queue, [], { resources: [{ name: 'a', shares: 4 }] })
    expect(given(state)).toEqual([
      [0, 1, 2].map((share) => `pool/p/r/a/${share}`),
      ['pool/p/r/a/3'],
    ])
  })

  it('is not reserved for a request that is served', () => {
    expect(scheduleAll(poolState([waiter(1, 'x')]))[0]!.keeps).toEqual([])
  })

  it('is reserved from the free resource that misses the least', () => {
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

  it('is reserved in the resource with the fewest missing units, and no more than needed', () => {
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

  it('is not what was preempted for another', () => {
    const preempted = [{ permit: 9, waiter: 2, keys: ['pool/p/r/g0'] }]
    const queue = [waiter(1, 'x'), waiter(2, 'x')]
    expect(given({ ...poolState(queue), preempted })).toEqual([['pool/p/r/g1'], ['pool/p/r/g0']])
  })
})

describe('the forecast', () => {
  const waits = (state: Parameters<typeof forecast>[0], now = 0) =>
    [...forecast(state, now)].map(([token, { wait, basis }]) => [token, Math.round(wait), basis])

  it('is the end of earlier bookings if nothing else is known', () => {
    const held = [permit(8, 'y', ['g0']), permit(9, 'y', ['g1'], { booked: 2 * HOUR })]
    const queue = [waiter(1, 'x'), waiter(2, 'x'), waiter(3, 'x')]
    expect(waits(poolState(queue, held))).toEqual([
      [1, HOUR, 'booked'],
      [2, 2 * HOUR, 'booked'],
      [3, 2 * HOUR, 'booked'],
    ])
    expect(waits(poolState(queue, held), HOUR / 2)[0]).toEqual([1, HOUR / 2, 'booked'])
  })

  it('is zero if something is free', () => {
    expect(waits(poolState([waiter(1, 'x')]))).toEqual([[1, 0, 'observed']])
  })

  it('is half of the time held for permits that outlast their booking', () => {
    const resources = [{ name: 'g0' }]
    const held = [permit(9, 'y', ['g0'])]
    const state = poolState([waiter(1, 'x')], held, { resources })
    expect(waits(state, HOUR)).toEqual([[1, HOUR / 2, 'booked']])
    expect(waits(state, 2 * HOUR)).toEqual([[1, HOUR, 'booked']])
  })

  it('ignores a kind with fewer than three observations', () => {
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

  it('uses the observed times of the kinds ahead if there are enough', () => {
    const resources = [{ name: 'g0' }]
    const times = [0, 1, 2].reduce<HoldTimes | undefined>((all) => observed(all, 60_000), undefined)
    const records = [{ ...EMPTY_RECORD, kinds: { k: times! } }]
    const held = [permit(9, 'y', ['g0'])]
    const minute = expectation(times)!.rest
    const queue = [
      waiter(1, 'x'),
      waiter(2, 'x'),
      { ...waiter(3, 'x'), kind: 'other' },
      waiter(4, 'x'),
    ]
    const state = { ...poolState(queue, held, { resources }), records }
    expect(waits(state)).toEqual([
      [1, Math.round(minute), 'observed'],
      [2, Math.round(2 * minute), 'observed'],
      [3, Math.round(3 * minute), 'observed'],
      [4, Math.round(3 * minute + HOUR), 'booked'],
    ])
  })

  it('uses the real schedule: a tenant that gets much falls behind', () => {
    const resources = [{ name: 'g0' }]
    const queue = [waiter(1, 'x'), waiter(2, 'x'), waiter(3, 'y')]
    const state = poolState(queue, [permit(9, 'z', ['g0'])], { resources })
    expect(waits(state).map(([token]) => token)).toEqual([1, 3, 2])
  })

  it('charges tenants for how long they held something, at any start time', () => {
    const booked = (hours: number) => ({ booked: hours * HOUR })
    const queue = [waiter(1, 'x', booked(1)), waiter(2, 'z', booked(1)), waiter(3, 'z', booked(3))]
    for (const since of [0, 1_800_000_000_000]) {
      const held = [permit(9, 'x', ['g0'], { ...booked(4), since })]
      const state = poolState(queue, held, { resources: [{ name: 'g0' }] })
      expect(waits(state, since).map(([token]) => token)).toEqual([2, 3, 1])
    }
  })

  it('charges tenants for what they hold once, when it is over', () => {
    const booked = (hours: number) => ({ booked: hours * HOUR })
    const held = [permit(8, 'x', ['g0'], booked(3)), permit(9, 'z', ['g1'], booked(4))]
    const queue = [
      waiter(1, 'y', booked(3)),
      waiter(2, 'x', booked(2)),
      waiter(3, 'x', booked(3)),
      waiter(4, 'z', booked(2)),
    ]
    expect(waits(poolState(queue, held)).map(([token]) => token)).toEqual([1, 2, 4, 3])
  })

  it('is missing behind a permit that never ends, and after 200 waiters', () => {
    const forever = [
      permit(8, 'y', ['g0'], { booked: Infinity }),
      permit(9, 'y', ['g1'], { booked: Infinity }),
    ]
    expect(waits(poolState([waiter(1, 'x')], forever))).toEqual([])
    const many = Array.from({ length: 205 }, (_, i) => waiter(i + 1, 'x'))
    expect(waits(poolState(many, [], { resources: [{ name: 'g0' }] }))).toHaveLength(200)
  })
})
