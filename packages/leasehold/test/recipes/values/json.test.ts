import { describe, expect, it } from 'vitest'
import { jsonOf, objectIn } from '../../../src/recipes/values/json.ts'

describe('a value as JSON', () => {
  it.each([[null], [0], ['a'], [[1, { b: true }]]])('is %j', (value) => {
    expect(jsonOf(value, 'the value')).toBe(JSON.stringify(value))
  })

  it('is refused if JSON cannot represent it, with the name of the value', () => {
    expect(() => jsonOf(undefined, 'the value of "k"')).toThrowError(
      expect.objectContaining({
        code: 'invalid-argument',
        message: expect.stringMatching(/^the value of "k" is undefined/),
      }),
    )
  })

  it('is refused if it cannot be written, with the cause', () => {
    const cause = new TypeError('no such field')
    const value = {
      toJSON() {
        throw cause
      },
    }
    expect(() => jsonOf(value, 'the value of "k"')).toThrowError(
      expect.objectContaining({
        code: 'invalid-argument',
        message: expect.stringMatching(/^the value of "k" cannot be .*\(no such field\)/),
        cause,
      }),
    )
  })
})

describe('the object in the value of a claim', () => {
  it('is what was written there', () => {
    expect(objectIn('{"a":1}')).toEqual({ a: 1 })
  })

  it.each([undefined, '', 'no JSON', 'null', '5', '"text"'])('is missing from %j', (text) => {
    expect(objectIn(text)).toBeUndefined()
  })
})
