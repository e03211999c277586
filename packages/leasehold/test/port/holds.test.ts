import { describe, expect, it } from 'vitest'
import { holders, holds, holdsBehind, type Standing } from '../../src/port/index.ts'

const exclusive: Standing = { mode: 'exclusive' }
const shared: Standing = { mode: 'shared' }
const atMost = (limit: number): Standing => ({ mode: 'shared', limit })

describe('what holds a key', () => {
  it.each([
    ['nothing in an empty list', [], 0],
    ['the first exclusive claim', [exclusive, exclusive], 1],
    ['all shared claims before an exclusive one', [shared, shared, exclusive, shared], 2],
    ['no shared claim behind an exclusive one', [exclusive, shared, shared], 1],
    ['as many as the limit says', [atMost(2), atMost(2), atMost(2)], 2],
    ['one more if the next limit is higher', [atMost(1), atMost(2), atMost(2)], 2],
    ['nothing behind a waiting claim', [atMost(1), atMost(1), shared], 1],
  ] as [string, Standing[], number][])('is %s', (_name, list, count) => {
    expect(holders(list)).toBe(count)
    for (const index of list.keys()) expect(holds(list, index)).toBe(index < count)
    expect(holds(list, -1)).toBe(false)
    expect(holds(list, list.length)).toBe(false)
  })

  it('depends only on the claims before it', () => {
    expect(holdsBehind(exclusive, 0, false)).toBe(true)
    expect(holdsBehind(exclusive, 1, true)).toBe(false)
    expect(holdsBehind(shared, 1, true)).toBe(true)
    expect(holdsBehind(shared, 1, false)).toBe(false)
    expect(holdsBehind(atMost(3), 2, true)).toBe(true)
    expect(holdsBehind(atMost(3), 3, true)).toBe(false)
  })
})
