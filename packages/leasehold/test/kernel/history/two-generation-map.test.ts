import { describe, expect, it } from 'vitest'
import { TwoGenerationMap } from '../../../src/kernel/index.ts'

describe('a two-generation map', () => {
  it('keeps at least the last entries and at most twice as many, older first', () => {
    const recent = new TwoGenerationMap<number, string>(3)
    for (let key = 1; key <= 8; key++) recent.set(key, `v${key}`)
    expect([...recent.entries()]).toEqual([
      [4, 'v4'],
      [5, 'v5'],
      [6, 'v6'],
      [7, 'v7'],
      [8, 'v8'],
    ])
    expect([3, 4, 6, 7].map((key) => recent.get(key))).toEqual([undefined, 'v4', 'v6', 'v7'])
    recent.set(4, 'again')
    expect(recent.get(4)).toBe('again')
  })

  it('has a copy that stays as it is while entries are added', () => {
    const map = new TwoGenerationMap<number, string>(3)
    for (let key = 1; key <= 4; key++) map.set(key, 'before')
    const copy = new TwoGenerationMap<number, string>(3)
    copy.copy(map)
    for (let key = 5; key <= 9; key++) map.set(key, 'after')
    expect([...copy.entries()].map(([key]) => key)).toEqual([1, 2, 3, 4])
  })
})
