import { expect, it } from 'vitest'
import { withWholeTimes } from '../../../src/http/responses/whole-times.ts'

it('makes times integers at every depth, and leaves other numbers and stored data alone', () => {
  const answer = {
    until: 5.9,
    remaining: 1.5,
    load: 0.25,
    ahead: [{ first: { heldSince: 7.001, value: '1.5' } }],
    endOfLife: Infinity,
    since: undefined,
    data: { until: 1.5 },
    value: [{ at: 2.5 }],
  }
  expect(withWholeTimes(answer)).toEqual({
    ...answer,
    until: 5,
    ahead: [{ first: { heldSince: 7, value: '1.5' } }],
  })
  expect(withWholeTimes(null)).toBeNull()
  expect(withWholeTimes('text')).toBe('text')
})
