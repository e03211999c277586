import fc from 'fast-check'
import { expect, it } from 'vitest'
import { CallRing } from '../../../src/stores/remote/call-ring.ts'

interface Entry {
  readonly id: number
}

it('the call ring behaves like a map, in any order of additions and removals', () => {
  // Each step adds some calls and removes some, mostly old ones.
  const step = fc.tuple(fc.nat(700), fc.nat(700), fc.boolean())
  fc.assert(
    fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
      const ring = new CallRing<Entry>()
      const map = new Map<number, Entry>()
      for (const [added, removed, newest] of steps) {
        for (let at = 0; at < added; at++) {
          const entry = { id: ring.next() }
          expect(map.has(entry.id)).toBe(false)
          ring.add(entry)
          map.set(entry.id, entry)
        }
        const ids = [...map.keys()]
        for (const id of newest ? ids.slice(-removed) : ids.slice(0, removed)) {
          ring.remove(id)
          map.delete(id)
          expect(ring.get(id)).toBeUndefined()
        }
        expect(ring.size).toBe(map.size)
        expect(ring.oldest()).toBe([...map.values()][0])
        expect(ring.all()).toEqual([...map.values()])
      }
    }),
    { numRuns: 50 },
  )
})
