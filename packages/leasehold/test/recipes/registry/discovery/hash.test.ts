import { describe, expect, it } from 'vitest'
import { choose, type Instance } from '../../../../src/recipes/index.ts'

describe('consistent hashing', () => {
  const fleet = (count: number, weight = 1) =>
    Array.from({ length: count }, (_, i) => ({ id: `i-${i}`, weight }) as Instance)
  const keys = Array.from({ length: 20_000 }, (_, i) => `user-${i}`)
  const placed = (instances: readonly Instance[]) =>
    keys.map((key) => choose(instances, 'consistent-hash', { key }, 0, () => 0)!.id)

  it.each([3, 10, 50])(
    'of %i spreads keys evenly and moves only those of the one that left',
    (n) => {
      const before = placed(fleet(n))
      for (const { id } of fleet(n)) {
        const share = before.filter((owner) => owner === id).length / keys.length
        expect(share).toBeGreaterThan(0.75 / n)
        expect(share).toBeLessThan(1.25 / n)
      }
      const gone = fleet(n)[1]!.id
      const after = placed(fleet(n).filter(({ id }) => id !== gone))
      const moved = keys.filter((_, i) => before[i] !== after[i])
      expect(moved.length).toBe(before.filter((owner) => owner === gone).length)
      expect(moved.length / keys.length).toBeLessThan(1.25 / n)
      // They spread over all others, not to one neighbour.
      const heirs = new Set(keys.flatMap((_, i) => (before[i] === gone ? [after[i]] : [])))
      expect(heirs.size).toBe(n - 1)
    },
  )

  it('gives an instance keys in proportion to its weight', () => {
    const owners = placed([...fleet(2), { id: 'heavy', weight: 2 } as Instance])
    const share = owners.filter((id) => id === 'heavy').length / keys.length
    expect(Math.abs(share - 0.5)).toBeLessThan(0.02)
  })
})
