import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { holders } from '../../../src/port/index.ts'
import { blockersOf, lineOf, type Place, placeName } from '../../../src/stores/zookeeper/line.ts'

const place = fc.record({
  mode: fc.constantFrom('exclusive' as const, 'shared' as const),
  limit: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }),
})

function lineFrom(specs: readonly { mode: 'exclusive' | 'shared'; limit: number | undefined }[]) {
  const names = specs.map(({ mode, limit }, at) => {
    const shared = mode === 'shared' ? limit : undefined
    const name = placeName({ mode, limit: shared, isPermanent: false, lease: 'l', claim: `c${at}` })
    return `${name}${String(at).padStart(10, '0')}`
  })
  return lineOf(names.reverse())
}

describe('the line of a key', () => {
  it('is read from the names of nodes, in the order of their numbers', () => {
    const line = lineOf(['cx.a.b.0000000010', 'sx', 'cs3~.a-_.c.0000000009', 'cs.a.d.0000000011'])
    expect(
      line.map(({ claim, mode, limit, isPermanent }) => [claim, mode, limit, isPermanent]),
    ).toEqual([
      ['c', 'shared', 3, true],
      ['b', 'exclusive', undefined, false],
      ['d', 'shared', undefined, false],
    ])
  })

  it('is in order where the numbers of the server go round', () => {
    const names = ['cx.a.3.-2147483647', 'cx.a.1.2147483647', 'cx.a.2.-2147483648']
    expect(lineOf(names).map(({ claim }) => claim)).toEqual(['1', '2', '3'])
  })

  it('lets nobody come to hold before one of those has left whom it watches', () => {
    fc.assert(
      fc.property(
        fc.array(place, { minLength: 2, maxLength: 9 }),
        fc.array(fc.nat(), { maxLength: 9 }),
        (specs, leaving) => {
          const line: Place[] = lineFrom(specs)
          const before = holders(line)
          for (const waiter of line.slice(before)) {
            const watched = new Set(blockersOf(line, line.indexOf(waiter)))
            expect(watched.size).toBeGreaterThan(0)
            let left = line
            for (const at of leaving) {
              const others = left.filter((each) => each !== waiter && !watched.has(each))
              if (others.length === 0) break
              const gone = others[at % others.length]
              left = left.filter((each) => each !== gone)
              expect(left.indexOf(waiter)).toBeGreaterThanOrEqual(holders(left))
            }
          }
        },
      ),
      { numRuns: 2000 },
    )
  })

  it('wakes few: who waits for exclusive holds watches the one before it, and no other', () => {
    const line = lineFrom(
      Array.from({ length: 20 }, () => ({ mode: 'exclusive' as const, limit: undefined })),
    )
    for (let at = 1; at < line.length; at++) expect(blockersOf(line, at)).toEqual([line[at - 1]])
  })
})
