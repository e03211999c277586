import { array, assert, integer, property } from 'fast-check'
import { describe, expect, it } from 'vitest'
import { TokenTable } from '../../../src/client/leases/token-table.ts'

/** Tokens close together, far apart, and larger than 32 bits. */
const token = integer({ min: 0, max: 40 }).map((n) => (n % 3 === 0 ? n * 2 ** 33 : n * n * 7))

describe('a table of tokens', () => {
  it('does what a map does, however entries come and go', () => {
    assert(
      property(array(token, { maxLength: 400 }), (tokens) => {
        const table = new TokenTable<{ claimToken: number }>()
        const map = new Map<number, { claimToken: number }>()
        for (const claimToken of tokens) {
          const entry = { claimToken }
          expect(table.get(claimToken)).toBe(map.get(claimToken))
          if (map.has(claimToken)) {
            expect(table.delete(claimToken)).toBe(map.delete(claimToken))
          } else {
            table.add(entry)
            map.set(claimToken, entry)
          }
          expect(table.has(claimToken)).toBe(map.has(claimToken))
          expect(table.size).toBe(map.size)
        }
        expect(table.values()).toEqual(
          [...map.values()].sort((one, other) => one.claimToken - other.claimToken),
        )
      }),
    )
  })

  it('is empty after clear, and forgets that it was large', () => {
    const table = new TokenTable<{ claimToken: number }>()
    for (let claimToken = 1; claimToken <= 1000; claimToken++) table.add({ claimToken })
    expect(table.values()).toHaveLength(1000)
    for (let claimToken = 1; claimToken < 1000; claimToken++) {
      expect(table.delete(claimToken)).toBe(true)
      expect(table.get(1000)).toEqual({ claimToken: 1000 })
    }
    expect(table.delete(1)).toBe(false)
    table.clear()
    expect([table.size, table.get(1000)]).toEqual([0, undefined])
  })
})
