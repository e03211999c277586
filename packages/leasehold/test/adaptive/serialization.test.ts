import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checksum } from '../../src/adaptive/serialization.ts'
import { AdaptiveTtl, type ObservedHold } from '../../src/index.ts'

const options = { kind: 'fine|tune\u2028 "1"' }

const observations: fc.Arbitrary<ObservedHold[]> = fc.array(
  fc.record({
    held: fc.double({ min: 0, max: 1e9, noNaN: true }),
    ended: fc.constantFrom('released', 'died', 'outlived'),
    ttl: fc.double({ min: 1, max: 1e7, noNaN: true }),
  }),
  { maxLength: 300, size: 'max' },
)

function serialize(seen: readonly ObservedHold[]): string {
  const made = new AdaptiveTtl(options)
  for (const hold of seen) made.observe(hold)
  return made.toText()
}

describe('the stored string', () => {
  it('is read as it was written, and gives the same choice', () => {
    fc.assert(
      fc.property(observations, (seen) => {
        const made = new AdaptiveTtl(options)
        for (const hold of seen) made.observe(hold)
        const text = made.toText()
        const read = AdaptiveTtl.fromText(text, options)
        expect(read.damage).toBeUndefined()
        expect(read.toText()).toBe(text)
        expect(read.seen).toBe(made.seen)
        expect(read.choose()).toEqual(made.choose())
      }),
    )
  })

  it('is short: some hundred characters for usual work, never more than 5,000', () => {
    const usual = Array.from({ length: 1000 }, (_, index) => ({
      held: 1000 * 1.01 ** (index % 400),
      ended: 'released' as const,
    }))
    expect(serialize(usual).length).toBeLessThan(600)
    const spread = Array.from({ length: 20_000 }, (_, index) => ({
      held: 1.1 ** ((index * 7) % 255),
      ended: 'outlived' as const,
      ttl: 1.1 ** (1 + ((index * 11) % 254)),
    }))
    const made = new AdaptiveTtl({ kind: 'k'.repeat(200), memory: 10_000 })
    for (const hold of spread) made.observe(hold)
    expect(made.toText().length).toBeLessThan(5000)
  })

  it('with any wrong character is not used, and the explanation says so', () => {
    const text = serialize([
      { held: 5000, ended: 'released' },
      { held: 7000, ended: 'outlived', ttl: 5000 },
    ])
    const places = fc.integer({ min: 0, max: text.length - 1 })
    fc.assert(
      fc.property(places, fc.string({ maxLength: 1, unit: 'binary' }), (at, wrong) => {
        fc.pre(text[at] !== wrong)
        const read = AdaptiveTtl.fromText(text.slice(0, at) + wrong + text.slice(at + 1), options)
        expect(read.damage).toBeTypeOf('string')
        expect(read.seen).toBe(0)
        expect(read.choose().ttl).toBe(30_000)
      }),
      { numRuns: 1000 },
    )
  })

  it('that is invalid is ignored, with the reason in the explanation', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(AdaptiveTtl.fromText(text, options).damage).toBeTypeOf('string')
      }),
    )
    const reasonOf = (text: string) => AdaptiveTtl.fromText(text, options).damage
    expect(reasonOf('adaptive-ttl/2 abc')).toBe(
      'it begins with "adaptive-ttl/2" and not with adaptive-ttl/1',
    )
    expect(reasonOf('x'.repeat(70_000))).toBe('it has 70000 characters')
    const other = AdaptiveTtl.fromText(new AdaptiveTtl({ kind: 'embed' }).toText(), options)
    expect(other.choose().why).toContain(
      'the stored history could not be used: it is about kind "embed"',
    )
  })

  // A string made by hand may have a correct checksum.
  it.each([
    ['k\n1\n0\n300:1\n\n0\n\n', 'its counts cannot be read'],
    ['k\n1\n0\n3:-1\n\n0\n\n', 'its counts cannot be read'],
    ['k\n1\n0\n3:1.5\n\n0\n\n', 'its counts cannot be read'],
    ['k\n1\nno\n3:1\n\n0\n\n', 'its counts cannot be read'],
    ['k\n1\n0\n3:1\n', 'it has 6 lines and not 9'],
    ['k\n1\n0\n3:1\n\n0\n\n', undefined],
  ])('with a correct checksum and wrong numbers is not used either: %j', (body, damage) => {
    const text = `adaptive-ttl/1 ${checksum(body)}\n${body}`
    expect(AdaptiveTtl.fromText(text, { kind: 'k' }).damage).toBe(damage)
  })
})
