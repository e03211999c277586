import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type AdaptiveOptions, AdaptiveTtl, type ObservedHold } from '../../src/index.ts'
import { SeededRandom } from '../../src/testing/index.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND

function learner(options: Partial<AdaptiveOptions> = {}): AdaptiveTtl {
  return new AdaptiveTtl({ kind: 'finetune', ...options })
}

function learnt(
  holds: readonly ObservedHold[],
  options: Partial<AdaptiveOptions> = {},
): AdaptiveTtl {
  const made = learner(options)
  for (const hold of holds) made.observe(hold)
  return made
}

/** Holds of about this length. One in `oneIn` ends with the death of its holder. */
function holds(count: number, length: number, oneIn = Infinity): ObservedHold[] {
  const random = new SeededRandom(count)
  return Array.from({ length: count }, (_, index) => ({
    held: length * random.between(0.5, 1.5),
    ended: index % oneIn === oneIn - 1 ? 'died' : 'released',
  }))
}

const observations: fc.Arbitrary<ObservedHold[]> = fc.array(
  fc.record({
    held: fc.double({ min: 0, max: 1e9, noNaN: true }),
    ended: fc.constantFrom('released', 'died', 'outlived'),
    ttl: fc.double({ min: 1, max: 1e7, noNaN: true }),
  }),
  { maxLength: 300, size: 'max' },
)

describe('before enough holds were observed', () => {
  it('chooses the initial ttl and says why', () => {
    const choice = learnt(holds(7, MINUTE)).choose()
    expect(choice).toMatchObject({ ttl: 30_000, renewEvery: 15_000, learnt: false, holds: 7 })
    expect(choice.why).toBe(
      "only 7 of the 8 holds of kind 'finetune' that are needed were seen, so the ttl is the initial 30 s",
    )
    expect(learnt(holds(8, MINUTE)).choose().learnt).toBe(true)
  })

  it('keeps the initial ttl within the bounds', () => {
    expect(learner({ max: '12s' }).choose().ttl).toBe(12_000)
    expect(learner({ min: '2m' }).choose().ttl).toBe(120_000)
    expect(learner({ initial: '1500ms', min: 100, store: step(1000) }).choose().ttl).toBe(2000)
  })
})

function step(ms: number) {
  return { min: ms, max: 3_600_000, step: ms }
}

describe('what it chooses', () => {
  it('is within the bounds of caller and store, in whole steps, with a reason', () => {
    const spans = fc.tuple(fc.integer({ min: 1, max: 1e6 }), fc.integer({ min: 1, max: 1e6 }))
    fc.assert(
      fc.property(observations, spans, fc.constantFrom(1, 250, 7000), (seen, span, ms) => {
        const [min, max] = [Math.min(...span), Math.max(...span) + 2 * ms]
        const { ttl, renewEvery, why } = learnt(seen, {
          min,
          max,
          store: step(ms),
          enough: 1,
        }).choose()
        expect(ttl).toBeGreaterThanOrEqual(Math.max(min, ms))
        expect(ttl).toBeLessThanOrEqual(max)
        expect(ttl % ms).toBe(0)
        expect(renewEvery).toBe(ttl / 2)
        expect(why).not.toMatch(/NaN|Infinity|undefined/)
      }),
    )
  })

  it('is explained in words and numbers', () => {
    const { why } = learnt(holds(300, MINUTE, 100)).choose()
    expect(why).toBe(
      "half of the last 300 holds of kind 'finetune' lasted at most 60 s and 95 % at most 88 s; a holder dies about once in 101 min of holding; with a ttl of 37 s a hold costs 2.7 renewals and 282 ms of blocked time on average; 19 s would cost 34 % more, 74 s would cost 24 % more",
    )
  })

  it('is the minimum if holders die all the time, and the maximum if renewals are expensive', () => {
    const dying = learnt(holds(100, MINUTE, 2), { blockedCost: 1000 }).choose()
    expect(dying.ttl).toBe(5000)
    expect(dying.why).toContain('it is the shortest allowed')
    const dear = learnt(holds(100, 60 * MINUTE), { renewalCost: 1e6 }).choose()
    expect(dear.ttl).toBe(600_000)
    expect(dear.why).toContain('it is the longest allowed')
  })

  it('avoids renewals for short work', () => {
    const { ttl, expected } = learnt(holds(200, 10 * SECOND), { deathShare: 0.001 }).choose()
    expect(ttl).toBeGreaterThan(2 * 15 * SECOND)
    expect(expected?.renewals).toBe(0)
  })

  it('is shorter if more holders die, or if blocked time costs more', () => {
    const ttlOf = (oneIn: number, blockedCost: number) =>
      learnt(holds(200, 5 * MINUTE, oneIn), { blockedCost }).choose().ttl
    expect(ttlOf(10, 10)).toBeLessThan(ttlOf(50, 10) / 1.5)
    expect(ttlOf(50, 40)).toBeLessThan(ttlOf(50, 10) / 1.5)
  })

  it('is better than any other ttl, by the formula and by adding up single holds', () => {
    const seen = holds(150, 2 * MINUTE, 30)
    const { ttl, expected } = learnt(seen).choose()
    // A holder may die at any moment of a hold, so blocked time is added up moment by moment.
    const costOf = (ttl: number) => {
      const every = ttl / 2
      const rate = (5 + 0.5) / (200 * meanOf(seen))
      const costs = seen.map(({ held }) => {
        let blocked = 0
        for (let at = 50; at < Number(held); at += 100) blocked += (ttl - (at % every)) * rate * 100
        return Math.ceil(Number(held) / every) - 1 + blocked / 100
      })
      return costs.reduce((sum, cost) => sum + cost, 0) / costs.length
    }
    expect(expected!.cost / costOf(ttl)).toBeCloseTo(1, 1)
    for (const factor of [0.25, 0.5, 0.7, 1.4, 2, 4]) {
      expect(costOf(ttl * factor)).toBeGreaterThan(costOf(ttl) * 0.98)
    }
  })

  it("does not count the time after a holder's death as work", () => {
    const works = holds(100, 10 * SECOND)
    const dead: ObservedHold[] = Array.from({ length: 100 }, () => ({
      held: 10 * SECOND + 225 * SECOND,
      ended: 'died',
      ttl: 300 * SECOND,
    }))
    expect(learnt([...works, ...dead]).choose().why).toContain('95 % at most 13 s')
  })
})

function meanOf(seen: readonly ObservedHold[]): number {
  return seen.reduce((sum, { held }) => sum + Number(held), 0) / seen.length
}

describe('when the work changes', () => {
  // Within a quarter of the ttl for the new work alone.
  it.each([
    ['longer', 40, 5 * SECOND, 20 * MINUTE],
    ['shorter', 300, 20 * MINUTE, 5 * SECOND],
  ])('to %s holds it follows within %i of them', (_, within, before, after) => {
    const options = { deathShare: 0.001 }
    const target = learnt(holds(1000, after), options).choose().ttl
    const follower = learnt(holds(1000, before), options)
    expect(Math.abs(Math.log(follower.choose().ttl / target))).toBeGreaterThan(Math.log(2))
    for (const hold of holds(within, after)) follower.observe(hold)
    expect(Math.abs(Math.log(follower.choose().ttl / target))).toBeLessThan(Math.log(1.25))
  })

  it('to holders that die more often it follows within 200 holds', () => {
    const follower = learnt(holds(1000, 10 * MINUTE))
    const before = follower.choose().ttl
    for (const hold of holds(200, 10 * MINUTE, 10)) follower.observe(hold)
    expect(follower.choose().ttl).toBeLessThan(before / 3)
  })
})

describe('a lease that ended before its work', () => {
  const outlived: ObservedHold = { held: MINUTE, ended: 'outlived', ttl: 20 * SECOND }

  it('doubles the ttl until it is forgotten', () => {
    const seen = holds(100, MINUTE, 5)
    const made = learnt(seen)
    expect(made.choose().ttl).toBeLessThan(20 * SECOND)
    made.observe(outlived)
    const choice = made.choose()
    expect(choice.ttl / (40 * SECOND)).toBeCloseTo(1, 1)
    expect(choice.why).toContain('it is not shorter because holders outlived a ttl of')
    for (const hold of holds(400, MINUTE, 5)) made.observe(hold)
    expect(made.choose().ttl).toBeLessThan(20 * SECOND)
  })

  it('does not count as a death', () => {
    const seen = holds(100, MINUTE)
    const ends = seen.map((hold) => ({ ...hold, ended: 'outlived' as const, ttl: 1 }))
    expect(learnt(ends).choose().expected).toEqual(learnt(seen).choose().expected)
  })

  it('also counts before enough holds were observed, and never exceeds the bounds', () => {
    const twice = { ...outlived, ttl: '40s' as const }
    expect(learnt([twice]).choose().ttl / (80 * SECOND)).toBeCloseTo(1, 1)
    expect(learnt([twice], { max: '50s' }).choose().ttl).toBe(50_000)
  })
})

describe('a merge', () => {
  it('does not depend on the direction or the order', () => {
    // A short memory, so that both generations are in use.
    const options = { memory: 10, enough: 1 }
    fc.assert(
      fc.property(observations, observations, observations, (first, second, third) => {
        const orders = [
          [first, second, third],
          [third, first, second],
          [second, third, first],
        ]
        const left = orders.map((order) => {
          const [a, b, c] = order.map((seen) => learnt(seen, options))
          a!.merge(b!)
          a!.merge(c!)
          return a!
        })
        const [a, b, c] = [first, second, third].map((seen) => learnt(seen, options))
        b!.merge(c!)
        a!.merge(b!)
        const [one, ...others] = [...left, a!].map((made) => made.choose())
        for (const other of others) {
          expect(other.ttl).toBe(one!.ttl)
          expect(other.why).toBe(one!.why)
        }
      }),
    )
  })

  it('equals one learner that observed everything, unless something is forgotten', () => {
    const [some, others] = [holds(90, MINUTE, 20), holds(100, 3 * SECOND)]
    const merged = learnt(some)
    merged.merge(learnt(others))
    expect(merged.choose()).toEqual(learnt([...some, ...others]).choose())
    expect(merged.seen).toBe(190)
  })

  it('does not change the other', () => {
    const other = learnt(holds(100, MINUTE))
    const before = other.toText()
    learnt(holds(100, SECOND)).merge(other)
    expect(other.toText()).toBe(before)
  })

  it('of several learners that overwrite each other leads to the same choice as one learner', () => {
    const random = new SeededRandom(7)
    const all = holds(2000, 4 * MINUTE, 5)
    const options = { kind: 'finetune' }
    let stored = new AdaptiveTtl(options).toText()
    const writers = Array.from({ length: 4 }, () => ({
      read: stored,
      fresh: new AdaptiveTtl(options),
    }))
    for (const hold of all) {
      const writer = random.pick(writers)
      writer.fresh.observe(hold)
      if (random.chance(0.2)) writer.read = stored
      if (random.chance(0.2)) {
        // Its read may be stale. Then it overwrites what others wrote since.
        const known = AdaptiveTtl.fromText(writer.read, options)
        known.merge(writer.fresh)
        stored = known.toText()
        writer.read = stored
        writer.fresh = new AdaptiveTtl(options)
      }
    }
    const shared = AdaptiveTtl.fromText(stored, options)
    const alone = learnt(all)
    expect(shared.seen).toBeGreaterThan(400)
    expect(shared.seen).toBeLessThan(2000)
    expect(Math.abs(Math.log(shared.choose().ttl / alone.choose().ttl))).toBeLessThan(Math.log(1.4))
  })

  it('into a string forgets like observing', () => {
    let stored = learnt(holds(300, 20 * MINUTE)).toText()
    for (let round = 0; round < 20; round++) {
      const known = AdaptiveTtl.fromText(stored, { kind: 'finetune' })
      known.merge(learnt(holds(20, 5 * SECOND)))
      stored = known.toText()
    }
    const choice = AdaptiveTtl.fromText(stored, { kind: 'finetune' }).choose()
    expect(choice.holds).toBeLessThanOrEqual(320)
    expect(choice.ttl).toBe(learnt(holds(20, 5 * SECOND)).choose().ttl)
  })

  it('refuses another kind, and anything but an AdaptiveTtl', () => {
    expect(() => learner().merge(learner({ kind: 'embed' }))).toThrow(
      'kind "embed" cannot be merged into kind "finetune"',
    )
    expect(() => learner().merge('text' as never)).toThrow('other is "text"')
  })
})
