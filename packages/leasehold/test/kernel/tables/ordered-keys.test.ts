import { describe, expect, it } from 'vitest'
import { KeyTable } from '../../../src/kernel/tables/key-table.ts'
import { NONE } from '../../../src/kernel/tables/rows.ts'

/** A table of these keys. `isClaimed` says which of them are claimed. */
function tableOf(names: readonly string[], isClaimed: (name: string) => boolean): KeyTable {
  const keys = new KeyTable(names.length)
  for (const name of names) {
    const slot = keys.ensure(name)
    if (isClaimed(name)) keys.claimAdded(slot)
  }
  return keys
}

function under(keys: KeyTable, prefix: string, after?: string): string[] {
  return [...keys.ordered.claimedUnder(prefix, after)].map((slot) => keys.name.get(slot)!)
}

/** More than a few leaves, unsorted. */
const NAMES = Array.from(
  { length: 3000 },
  (_, at) => `k/${String((at * 1009) % 3000).padStart(4, '0')}`,
)
const SORTED = [...NAMES].sort()

describe('ordered keys', () => {
  it('are read by prefix and from any key', () => {
    const keys = tableOf(['a', 'z', ...NAMES, 'k', 'k0', 'A'], () => true)
    expect(under(keys, '')).toEqual(['A', 'a', 'k', ...SORTED, 'k0', 'z'])
    expect(under(keys, 'k/')).toEqual(SORTED)
    expect(under(keys, 'k/12')).toEqual(SORTED.slice(1200, 1300))
    for (const at of [0, 1, 255, 256, 511, 512, 513, 1024, 2998, 2999]) {
      expect(under(keys, 'k/', SORTED[at])).toEqual(SORTED.slice(at + 1))
      expect(under(keys, 'k/', `${SORTED[at]}+`)).toEqual(SORTED.slice(at + 1))
    }
    expect(under(keys, 'k/', 'a')).toEqual(SORTED)
    expect(under(keys, 'k/', 'z')).toEqual([])
    expect(under(keys, 'm')).toEqual([])
  })

  it.each([
    ['in order', SORTED],
    ['in reverse order', SORTED.toReversed()],
    [
      'in two interleaved orders',
      SORTED.map((_, at) => SORTED[at % 2 ? at >> 1 : 2999 - (at >> 1)]!),
    ],
  ])('are sorted when they are added %s, and others forgotten meanwhile', (_how, names) => {
    const keys = new KeyTable(0)
    const gone: string[] = []
    for (const [at, name] of names.entries()) {
      keys.claimAdded(keys.ensure(name))
      if (at % 3 !== 0) continue
      // The key is forgotten in the second round, as it was claimed in the first.
      const slot = keys.find(names[at >> 1]!)
      if (slot === NONE) continue
      gone.push(names[at >> 1]!)
      keys.claimRemoved(slot)
      keys.forgetIdle()
    }
    expect(gone.length).toBeGreaterThan(500)
    for (const name of gone) expect(keys.find(name)).toBe(NONE)
    const left = SORTED.filter((name) => !gone.includes(name))
    expect(under(keys, '')).toEqual(left)
    expect(under(keys, 'k/', left[700])).toEqual(left.slice(701))
  })

  it('skip keys without claims', () => {
    const keys = tableOf(NAMES, (name) => name.endsWith('7'))
    expect(under(keys, '')).toEqual(SORTED.filter((name) => name.endsWith('7')))
    expect(under(keys, 'k/0', 'k/0100')).toEqual(
      SORTED.slice(101, 1000).filter((name) => name.endsWith('7')),
    )
  })

  it('can be removed, down to none, and added again', () => {
    const keys = new KeyTable(0)
    for (const name of NAMES) keys.claimAdded(keys.ensure(name))
    const left = new Set(NAMES)
    for (const [count, name] of NAMES.entries()) {
      keys.claimRemoved(keys.find(name))
      keys.forgetIdle()
      left.delete(name)
      if (count % 250 === 0) expect(under(keys, '')).toEqual([...left].sort())
    }
    expect(under(keys, '')).toEqual([])
    expect(keys.find(NAMES[0]!)).toBe(-1)
    for (const name of ['c', 'a', 'b']) keys.claimAdded(keys.ensure(name))
    expect(under(keys, '')).toEqual(['a', 'b', 'c'])
  })

  it('are not searched beyond the end of the prefix', () => {
    const keys = tableOf(NAMES, () => false)
    const names = keys.name.get.bind(keys.name)
    let looked = 0
    keys.name.get = (slot) => {
      looked++
      return names(slot)
    }
    expect(under(keys, 'k/0000')).toEqual([])
    expect(looked).toBeLessThan(60)
  })
})
