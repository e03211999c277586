import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ERROR, Sketch } from '../../src/adaptive/sketch.ts'

const times = fc.array(fc.double({ min: 1, max: 86_400_000, noNaN: true }), {
  minLength: 1,
  maxLength: 200,
  size: 'max',
})

function sketchOf(values: readonly number[]): Sketch {
  const sketch = new Sketch()
  for (const value of values) sketch.add(value)
  return sketch
}

describe('a sketch', () => {
  it('knows every quantile within its relative error', () => {
    fc.assert(
      fc.property(times, fc.double({ min: 0.001, max: 1, noNaN: true }), (values, share) => {
        const sorted = [...values].sort((a, b) => a - b)
        const exact = sorted[Math.max(0, Math.ceil(share * sorted.length - 1e-6) - 1)]!
        const estimate = sketchOf(values).quantile(share)
        expect(Math.abs(estimate - exact) / exact).toBeLessThanOrEqual(ERROR + 1e-9)
      }),
    )
  })

  it('knows the mean within its relative error', () => {
    fc.assert(
      fc.property(times, (values) => {
        const exact = values.reduce((sum, value) => sum + value, 0) / values.length
        expect(Math.abs(sketchOf(values).mean - exact) / exact).toBeLessThanOrEqual(ERROR + 1e-9)
      }),
    )
  })

  it('is the same if it is added up from parts', () => {
    fc.assert(
      fc.property(times, times, (some, others) => {
        const sum = sketchOf(some)
        sum.addAll(sketchOf(others))
        expect(sum.bars).toEqual(sketchOf([...some, ...others]).bars)
      }),
    )
  })

  it('counts times outside of its range at its ends', () => {
    const sketch = sketchOf([0, 1e-9, 1e300])
    expect(sketch.weight).toBe(3)
    expect(sketch.quantile(0.5)).toBeLessThanOrEqual(1)
    expect(sketch.quantile(1)).toBeGreaterThan(365 * 86_400_000)
  })

  it('that is empty returns 0', () => {
    expect([new Sketch().quantile(0.5), new Sketch().mean]).toEqual([0, 0])
  })
})
