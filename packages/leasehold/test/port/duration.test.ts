import { describe, expect, it } from 'vitest'
import { type Duration, formatDuration, milliseconds, positive } from '../../src/port/index.ts'

const refused = expect.objectContaining({ code: 'invalid-argument' })

describe('a duration', () => {
  it.each([
    ['250ms', 250],
    ['30s', 30_000],
    ['2m', 120_000],
    ['1.5h', 5_400_000],
    ['0.25s', 250],
    ['1d', 86_400_000],
    ['10s', 10_000],
    ['infinite', Infinity],
    [0, 0],
    [7.5, 7.5],
    [Infinity, Infinity],
  ] as [Duration, number][])('%s is %d ms', (value, ms) => {
    expect(milliseconds(value, 'ttl')).toBe(ms)
  })

  it.each([
    '',
    's',
    '30',
    '30 s',
    '-30s',
    'a30s',
    '30sa',
    '30ss',
    '1.s',
    '1.5.5s',
    '1.xs',
    '1e3s',
    'Infinite',
    -1,
    -0.1,
    Number.NaN,
    null,
    undefined,
    {},
    ['30s'],
    true,
  ])('is not %s', (value) => {
    expect(() => milliseconds(value as Duration, 'ttl')).toThrow(refused)
    expect(() => milliseconds(value as Duration, 'ttl')).toThrow('ttl is ')
  })

  it('that can be waited for is more than 0 and finite', () => {
    expect(positive('5s', 'timeout')).toBe(5000)
    expect(positive(0.5, 'timeout')).toBe(0.5)
    expect(positive(Number.MAX_VALUE, 'timeout')).toBe(Number.MAX_VALUE)
    for (const value of [0, '0s', Infinity, 'infinite'] as const) {
      expect(() => positive(value, 'timeout')).toThrow(refused)
    }
  })

  it.each([
    [Infinity, 'infinite'],
    [86_400_000, '1d'],
    [129_600_000, '1.5d'],
    [3_600_000, '1h'],
    [5_400_000, '1.5h'],
    [60_000, '1m'],
    [90_000, '1.5m'],
    [30_000, '30s'],
    [1000, '1s'],
    [1500, '1.5s'],
    [1234, '1234ms'],
    [999, '999ms'],
    [250, '250ms'],
    [0.12345, '0.123ms'],
    [0, '0ms'],
    [6000, '6s'],
    [61_000, '61s'],
  ])('of %d ms is written %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text)
  })
})
