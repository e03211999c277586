import { describe, expect, it } from 'vitest'
import { DEFAULT_HTTP } from '../../../src/http/options.ts'
import type { Call } from '../../../src/http/route.ts'
import { durationOf, optionalDuration, waitOf } from '../../../src/http/routes/durations.ts'

describe('a duration in a request', () => {
  it.each([
    ['30s', 30_000],
    ['30000', 30_000],
    ['0', 0],
    ['12.25', 12.25],
    [250, 250],
    ['infinite', Infinity],
  ])('is read from a string and from a number: %s', (given, ms) => {
    expect(durationOf('ttl', given)).toBe(ms)
  })

  it.each(['', 'x30', '30x', '30.', '.5', '1.2.3', '-5', '0x10', '1e3', -5])(
    'is refused if it is invalid: %s',
    (given) => {
      expect(() => durationOf('ttl', given)).toThrowError(
        expect.objectContaining({
          ...{ code: 'invalid-argument', message: expect.stringMatching(/^ttl is /) },
        }),
      )
    },
  )

  it('may be left out', () => {
    expect(optionalDuration('grace', undefined)).toBeUndefined()
    expect(optionalDuration('grace', '5s')).toBe(5000)
  })
})

describe('how long a request waits', () => {
  const waiting = (wait?: string) =>
    waitOf({ query: { wait }, options: { ...DEFAULT_HTTP, longPoll: 2000 } } as unknown as Call)

  it('is false by default, and has a maximum', () => {
    expect([waiting(), waiting('1s'), waiting('2000')]).toEqual([0, 1000, 2000])
    expect(() => waiting('2001')).toThrowError(/^wait is "2001"; the maximum is 2s/)
    expect(() => waiting('soon')).toThrowError(/^wait is "soon"/)
  })
})
