import { describe, expect, it } from 'vitest'
import { KeyTable } from '../../src/kernel/key-table.ts'
import { NONE } from '../../src/kernel/rows.ts'

function claimed(keys: KeyTable, name: string): number {
  const slot = keys.ensure(name)
  keys.grown(slot)
  return slot
}

function known(keys: KeyTable, names: readonly string[]): string[] {
  return names.filter((name) => keys.find(name) !== NONE)
}

describe('the table of keys', () => {
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

  it('starts each key with nothing', () => {
    const keys = new KeyTable(0)
    const slot = claimed(keys, 'a')
    keys.first.set(slot, 5)
    keys.last.set(slot, 5)
    keys.lastHeld.set(slot, 5)
    keys.held.set(slot, 5)
    keys.tenure.set(slot, 5)
    keys.shrunk(slot)
    keys.tidy()
    expect(keys.find('a')).toBe(NONE)
    expect(keys.ensure('b')).toBe(slot)
    expect(keys.name.get(slot)).toBe('b')
    for (const field of [keys.first, keys.last, keys.lastHeld]) expect(field.get(slot)).toBe(NONE)
    for (const field of [keys.count, keys.held, keys.tenure]) expect(field.get(slot)).toBe(0)
  })

  it('keeps so many idle keys, and forgets those that were not claimed for longest', () => {
    const keys = new KeyTable(2)
    const names = ['a', 'b', 'c', 'd']
    for (const name of names) claimed(keys, name)
    keys.tidy()
    expect(known(keys, names)).toEqual(names)
    for (const name of ['c', 'a', 'd']) keys.shrunk(keys.find(name))
    keys.tidy()
    expect(known(keys, names)).toEqual(['b', 'c', 'd'])
    // It is used again before its turn comes, and so the other one goes.
    keys.grown(keys.find('c'))
    keys.shrunk(keys.find('c'))
    keys.shrunk(keys.find('b'))
    keys.tidy()
    expect(known(keys, names)).toEqual(['b', 'c'])
  })

  it('keeps a key that is claimed, however long it was idle before', () => {
    const keys = new KeyTable(1)
    const slot = claimed(keys, 'a')
    keys.shrunk(slot)
    keys.grown(slot)
    for (const name of ['b', 'c', 'd']) keys.shrunk(claimed(keys, name))
    keys.tidy()
    expect(known(keys, ['a', 'b', 'c', 'd'])).toEqual(['a', 'd'])
    keys.shrunk(slot)
    keys.tidy()
    expect(known(keys, ['a', 'b', 'c', 'd'])).toEqual(['a'])
  })

  it('forgets a key that was claimed again while its turn in the queue came', () => {
    const keys = new KeyTable(0)
    const slot = claimed(keys, 'a')
    keys.tidy()
    keys.grown(slot)
    keys.shrunk(slot)
    keys.shrunk(slot)
    keys.tidy()
    expect(keys.find('a')).toBe(NONE)
  })

  it('finds the key that was looked up last after another was forgotten', () => {
    const keys = new KeyTable(0)
    const [one, two] = [claimed(keys, 'a'), claimed(keys, 'b')]
    keys.shrunk(one)
    expect(keys.find('b')).toBe(two)
    keys.tidy()
    expect(keys.find('b')).toBe(two)
    expect(keys.find('a')).toBe(NONE)
  })

  it('forgets in order however many there are', () => {
    const keys = new KeyTable(100)
    const names = Array.from({ length: 1000 }, (_, at) => `n${at}`)
    for (let at = 0; at < names.length; at++) {
      keys.shrunk(claimed(keys, names[at]!))
      // Every seventh time only, so that the queue grows while it has begun in the middle.
      if (at % 170 === 0) {
        for (let count = 0; count < 2; count++) keys.tidy()
        const from = Math.max(0, at - 99)
        expect(known(keys, names)).toEqual(names.slice(from, at + 1))
      }
    }
  })
})
