import { describe, expect, it } from 'vitest'
import {
  choose,
  type Instance,
  type PickOptions,
  type PickStrategy,
} from '../../../../src/recipes/index.ts'

const instance = (id: string, more: Partial<Instance> = {}) =>
  ({ id, weight: 1, ...more }) as Instance

/** Fixed numbers in place of random ones. */
const numbers = (...given: number[]) => {
  let at = 0
  return () => given[at++]!
}

const pick = (
  instances: readonly Instance[],
  strategy: PickStrategy,
  {
    turn = 0,
    random = [0],
    ...options
  }: PickOptions & { readonly turn?: number; readonly random?: readonly number[] } = {},
) => choose(instances, strategy, options, turn, numbers(...random))?.id

describe('in proportion to weights', () => {
  const fleet = [instance('a'), instance('b', { weight: 3 }), instance('c', { weight: 4 })]

  it.each([
    [0, 'a'],
    [0.124, 'a'],
    [0.125, 'b'],
    [0.499, 'b'],
    [0.5, 'c'],
    [0.999, 'c'],
    // An invalid random number still selects one of them.
    [1, 'c'],
  ])('%d as random means %s', (random, id) => {
    expect(pick(fleet, 'weighted', { random: [random] })).toBe(id)
  })

  it('all of weight 0 count the same', () => {
    const idle = ['a', 'b', 'c', 'd'].map((id) => instance(id, { weight: 0 }))
    const picked = [0, 0.25, 0.5, 0.75].map((at) => pick(idle, 'weighted', { random: [at] }))
    expect(picked).toEqual(['a', 'b', 'c', 'd'])
  })
})

describe('the less loaded of two', () => {
  const fleet = [5, 4, 3, 2].map((load) => instance(`load-${load}`, { load }))

  it.each([
    [[0, 0], 'load-4'],
    [[0, 0.999], 'load-2'],
    [[0.999, 0], 'load-2'],
    [[0.25, 0], 'load-4'],
    [[0.25, 0.34], 'load-3'],
    [[0.5, 0.34], 'load-3'],
    [[0.5, 0.7], 'load-2'],
  ])('for random %j is %s: never one with itself', (random, id) => {
    expect(pick(fleet, 'two-choices', { random })).toBe(id)
  })

  it('is the only one if there are not two', () => {
    expect(pick(fleet.slice(0, 1), 'two-choices')).toBe('load-5')
    expect(pick([], 'two-choices')).toBeUndefined()
  })
})

describe('the least loaded', () => {
  it('has the lowest load per weight; no report means no load', () => {
    const fleet = [
      instance('a', { load: 10, weight: 2 }),
      instance('b', { load: 4 }),
      instance('c', { load: 5 }),
    ]
    expect(pick(fleet, 'least-loaded')).toBe('b')
    expect(pick([...fleet, instance('d')], 'least-loaded')).toBe('d')
    const idle = fleet.map((one) => ({ ...one, weight: 0 }))
    expect(pick(idle, 'least-loaded')).toBe('b')
  })

  it('alternates with equally loaded ones only', () => {
    const fleet = [
      instance('a', { load: 1 }),
      instance('b', { load: 2 }),
      instance('c', { load: 1 }),
    ]
    const turns = [0, 1, 2, 3].map((turn) => pick(fleet, 'least-loaded', { turn }))
    expect(turns).toEqual(['a', 'c', 'a', 'c'])
  })
})

describe('round-robin', () => {
  it('is picked whatever its load is', () => {
    const fleet = [3, 1, 2].map((load) => instance(`load-${load}`, { load }))
    const turns = [0, 1, 2, 3].map((turn) => pick(fleet, 'round-robin', { turn }))
    expect(turns).toEqual(['load-3', 'load-1', 'load-2', 'load-3'])
  })
})

describe('an instance without weight', () => {
  it.each(['round-robin', 'zone-first', 'consistent-hash'] as const)(
    'is chosen by %s only if there is no other',
    (strategy) => {
      const options = { zone: 'z', key: 'k' }
      const none = instance('none', { weight: 0, zone: 'z' })
      for (let turn = 0; turn < 4; turn++) {
        expect(pick([none, instance('some')], strategy, { ...options, turn })).toBe('some')
        expect(pick([none], strategy, { ...options, turn })).toBe('none')
        expect(pick([], strategy, { ...options, turn })).toBeUndefined()
      }
    },
  )
})

describe('an instance in the zone', () => {
  it('alternates, and so do the others if there is none', () => {
    const fleet = ['a', 'b', 'c'].map((id) => instance(id, { zone: id === 'a' ? 'x' : 'y' }))
    const turns = (zone: string) =>
      [0, 1, 2, 3].map((turn) => pick(fleet, 'zone-first', { turn, zone }))
    expect(turns('y')).toEqual(['b', 'c', 'b', 'c'])
    expect(turns('w')).toEqual(['a', 'b', 'c', 'a'])
  })
})

describe('the owner of a key', () => {
  it('is the same in every version: programs of two versions must agree', () => {
    const fleet = ['a', 'b', 'c', 'd'].map((id) => instance(id))
    const owners = (instances: readonly Instance[]) =>
      Array.from({ length: 40 }, (_, at) =>
        pick(instances, 'consistent-hash', { key: `user-${at}` }),
      ).join('')
    expect(owners([...fleet, instance('e', { weight: 3 })])).toBe(
      'cbeeddececcbaaceedbccdceeeeeaeeeadeecdbc',
    )
    const idle = [...fleet, instance('e')].map((one) => ({ ...one, weight: 0 }))
    expect(owners(idle)).toBe(owners([...fleet, instance('e')]))
  })

  it.each([
    ['i5uzx', 'ig2ad', 'ig2ad'],
    ['i5uzy', 'ig2ae', 'i5uzy'],
  ])('is decided by the second hash if %s and %s have the same first one: %s', (a, b, owner) => {
    expect(pick([instance(a), instance(b)], 'consistent-hash', { key: 'k' })).toBe(owner)
    expect(pick([instance(b), instance(a)], 'consistent-hash', { key: 'k' })).toBe(owner)
  })
})
