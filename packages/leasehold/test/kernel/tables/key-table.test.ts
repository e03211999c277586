import { describe, expect, it } from 'vitest'
import { KeyTable } from '../../../src/kernel/tables/key-table.ts'
import { NONE } from '../../../src/kernel/tables/rows.ts'

function claimed(keys: KeyTable, name: string): number {
  const slot = keys.ensure(name)
  keys.claimAdded(slot)
  return slot
}

function known(keys: KeyTable, names: readonly string[]): string[] {
  return names.filter((name) => keys.find(name) !== NONE)
}

describe('the key table', () => {
  it('finds each of many keys by its name', () => {
    const keys = new KeyTable(0)
    const names = Array.from({ length: 2000 }, (_, at) => `jobs/${at.toString(36)}`)
    const slots = names.map((name) => claimed(keys, name))
    expect(new Set(slots).size).toBe(names.length)
    expect(names.map((name) => keys.find(name))).toEqual(slots)
    expect(names.map((name) => keys.ensure(name))).toEqual(slots)
    expect(keys.find('jobs')).toBe(NONE)
    expect(keys.find('')).toBe(NONE)
  })

  it('starts each key empty', () => {
    const keys = new KeyTable(0)
    const slot = claimed(keys, 'a')
    keys.first.set(slot, 5)
    keys.last.set(slot, 5)
    keys.lastHeld.set(slot, 5)
    keys.held.set(slot, 5)
    keys.tenure.set(slot, 5)
    keys.claimRemoved(slot)
    keys.forgetIdle()
    expect(keys.find('a')).toBe(NONE)
    expect(keys.ensure('b')).toBe(slot)
    expect(keys.name.get(slot)).toBe('b')
    for (const field of [keys.first, keys.last, keys.lastHeld]) expect(field.get(slot)).toBe(NONE)
    for (const field of [keys.count, keys.held, keys.tenure]) expect(field.get(slot)).toBe(0)
  })

  it('keeps a number of idle keys, and forgets those that were idle longest', () => {
    const keys = new KeyTable(2)
    const names = ['a', 'b', 'c', 'd']
    for (const name of names) claimed(keys, name)
    keys.forgetIdle()
    expect(known(keys, names)).toEqual(names)
    for (const name of ['c', 'a', 'd']) keys.claimRemoved(keys.find(name))
    keys.forgetIdle()
    expect(known(keys, names)).toEqual(['b', 'c', 'd'])
    // It is claimed again before its turn, so the other one is forgotten.
    keys.claimAdded(keys.find('c'))
    keys.claimRemoved(keys.find('c'))
    keys.claimRemoved(keys.find('b'))
    keys.forgetIdle()
    expect(known(keys, names)).toEqual(['b', 'c'])
  })

  it('keeps a key that is claimed, however long it was idle before', () => {
    const keys = new KeyTable(1)
    const slot = claimed(keys, 'a')
    keys.claimRemoved(slot)
    keys.claimAdded(slot)
    for (const name of ['b', 'c', 'd']) keys.claimRemoved(claimed(keys, name))
    keys.forgetIdle()
    expect(known(keys, ['a', 'b', 'c', 'd'])).toEqual(['a', 'd'])
    keys.claimRemoved(slot)
    keys.forgetIdle()
    expect(known(keys, ['a', 'b', 'c', 'd'])).toEqual(['a'])
  })

  it('forgets a key that was claimed again and released, when its turn comes', () => {
    const keys = new KeyTable(0)
    const slot = claimed(keys, 'a')
    keys.forgetIdle()
    keys.claimAdded(slot)
    keys.claimRemoved(slot)
    keys.claimRemoved(slot)
    keys.forgetIdle()
    expect(keys.find('a')).toBe(NONE)
  })

  it('still finds the key that was looked up last after another was forgotten', () => {
    const keys = new KeyTable(0)
    const [one, two] = [claimed(keys, 'a'), claimed(keys, 'b')]
    keys.claimRemoved(one)
    expect(keys.find('b')).toBe(two)
    keys.forgetIdle()
    expect(keys.find('b')).toBe(two)
    expect(keys.find('a')).toBe(NONE)
  })

  it('forgets any number of keys in order', () => {
    const keys = new KeyTable(100)
    const names = Array.from({ length: 1000 }, (_, at) => `n${at}`)
    for (let at = 0; at < names.length; at++) {
      keys.claimRemoved(claimed(keys, names[at]!))
      // Only every seventh time, so that the queue grows while it starts in the middle.
      if (at % 170 === 0) {
        for (let count = 0; count < 2; count++) keys.forgetIdle()
        const from = Math.max(0, at - 99)
        expect(known(keys, names)).toEqual(names.slice(from, at + 1))
      }
    }
  })
})
