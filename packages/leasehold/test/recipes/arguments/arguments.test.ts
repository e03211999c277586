import { describe, expect, it } from 'vitest'
import {
  checkWaitOptions,
  countOf,
  durationOf,
  encodedPart,
  functionOf,
  keyPart,
  NAME_MAX,
  namesOf,
  numberOf,
  objectOf,
  oneOf,
  recordOf,
  stringOf,
} from '../../../src/recipes/arguments.ts'

const LONG = 'x'.repeat(NAME_MAX)
const LONE_SURROGATE = 'a\ud800'

function refusalOf(check: () => unknown): string {
  try {
    check()
  } catch (error) {
    expect(error).toMatchObject({ code: 'invalid-argument' })
    return (error as Error).message
  }
  return 'not refused'
}

describe('a name that becomes part of a key', () => {
  it.each(['a', 'gpu-0', 'straße', LONG])('may be %j', (name) => {
    expect(keyPart('name', name)).toBe(name)
  })

  it.each([
    ['a/b', 'name is "a/b": it must not contain a slash or a space'],
    ['/', 'name is "/": it must not contain a slash or a space'],
    ['a b', 'name is "a b": it must not contain a slash or a space'],
    [`${LONG}x`, 'name has 129 characters: at most 128 are allowed'],
    ['', 'name is "": give a string of 1 to 128 characters'],
    [5, 'name is 5: give a string of 1 to 128 characters'],
    ['a\nb', 'name is "a\\nb": use printable characters only'],
    [LONE_SURROGATE, 'name is "a\\ud800": use printable characters only'],
  ])('must not be %j', (name, message) => {
    expect(refusalOf(() => keyPart('name', name))).toBe(message)
  })
})

describe('a string that is encoded as part of a key', () => {
  it.each([
    ['a', 'a'],
    ['a/b c', 'a%2Fb%20c'],
    ['\n', '%0A'],
    ['ß', '%C3%9F'],
  ])('may be %j', (value, part) => {
    expect(encodedPart('key', value)).toBe(part)
  })

  it.each([['', 5, undefined, LONE_SURROGATE].map((value) => [value])].flat())(
    'must not be %j',
    (value) => {
      expect(refusalOf(() => encodedPart('key', value))).toMatch(/^key is .*: it must be a string/)
    },
  )
})

describe('a string', () => {
  it('may be as long as allowed, and no longer', () => {
    expect(stringOf('note', 'abc', 3)).toBe('abc')
    expect(refusalOf(() => stringOf('note', 'abcd', 3))).toBe(
      'note has 4 characters: at most 3 are allowed',
    )
  })

  it('may have spaces', () => {
    expect(stringOf('note', 'a b', 3)).toBe('a b')
  })
})

describe('a list of names', () => {
  it('has each name once, in the order in which they were given', () => {
    expect(namesOf('tags', ['b', 'a', 'b'])).toEqual(['b', 'a'])
    expect(namesOf('tags', [])).toEqual([])
  })

  it('is empty if it is not given', () => {
    expect(namesOf('tags', undefined)).toEqual([])
  })

  it('may have 64 entries', () => {
    const names = Array.from({ length: 64 }, (_, i) => `n${i}`)
    expect(namesOf('tags', names)).toEqual(names)
    expect(refusalOf(() => namesOf('tags', [...names, 'one more']))).toBe(
      'tags has 65 entries: at most 64 are allowed',
    )
  })

  it.each([
    ['a', 'tags is "a": give an array of strings'],
    [null, 'tags is null: give an array of strings'],
    [['a', 5], 'an entry of tags is 5: give a string of 1 to 128 characters'],
    [[`${LONG}x`], 'an entry of tags has 129 characters: at most 128 are allowed'],
  ])('must not be %j', (value, message) => {
    expect(refusalOf(() => namesOf('tags', value))).toBe(message)
  })
})

describe('a record of strings', () => {
  it('keeps its names, and values that are empty', () => {
    expect(recordOf('meta', { zone: 'a', note: '' }, 5)).toEqual({ zone: 'a', note: '' })
    expect(recordOf('meta', undefined, 5)).toEqual({})
  })

  it('treats __proto__ like any other name', () => {
    const record = recordOf('meta', JSON.parse('{"__proto__":"x"}'), 5)
    expect(Object.entries(record)).toEqual([['__proto__', 'x']])
    expect(Object.getPrototypeOf(record)).toBe(Object.prototype)
  })

  it('may have 64 entries', () => {
    const entries = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`n${i}`, 'x']))
    expect(recordOf('meta', entries(64), 5)).toEqual(entries(64))
    expect(refusalOf(() => recordOf('meta', entries(65), 5))).toBe(
      'meta has 65 entries: at most 64 are allowed',
    )
  })

  it.each([
    [{ zone: 5 }, 'meta.zone is 5: give a string of 1 to 5 characters'],
    [{ zone: 'abcdef' }, 'meta.zone has 6 characters: at most 5 are allowed'],
    [{ '': 'a' }, 'a name in meta is "": give a string of 1 to 128 characters'],
    ['a', 'meta is "a": it must be an object'],
  ])('must not be %j', (value, message) => {
    expect(refusalOf(() => recordOf('meta', value, 5))).toBe(message)
  })
})

describe('an object', () => {
  it('is returned unchanged', () => {
    const value = { a: 1 }
    expect(objectOf('options', value)).toBe(value)
  })

  it.each([
    [null, 'options is null: it must be an object'],
    [undefined, 'options is undefined: it must be an object'],
    ['a', 'options is "a": it must be an object'],
    [[1], 'options is an array: it must be an object'],
  ])('must not be %j', (value, message) => {
    expect(refusalOf(() => objectOf('options', value))).toBe(message)
  })
})

describe('the options of a call that waits', () => {
  it.each([{}, { signal: undefined }, { signal: AbortSignal.abort() }])('may be %j', (options) => {
    expect(() => checkWaitOptions('it', options, new Set(['signal']))).not.toThrow()
  })

  it.each([
    [{ signal: null }, 'signal is null: it must be an AbortSignal'],
    [{ signal: 'stop' }, 'signal is "stop": it must be an AbortSignal'],
    [{ signal: {} }, 'signal is an object: it must be an AbortSignal'],
    [null, 'options is null: it must be an object'],
  ])('must not be %j', (options, message) => {
    expect(refusalOf(() => checkWaitOptions('it', options as never, new Set(['signal'])))).toBe(
      message,
    )
  })
})

it('work must be a function', () => {
  const work = () => 5
  expect(functionOf('work', work)).toBe(work)
  expect(refusalOf(() => functionOf('work', 5))).toBe('work is 5: give a function')
})

describe('a number', () => {
  it.each([2, 2.5, 3])('may be %j, its bounds included', (value) => {
    expect(numberOf('weight', value, 2, 3)).toBe(value)
  })

  it.each([1.9, 3.1, Number.NaN, '2', undefined])('must not be %j', (value) => {
    expect(refusalOf(() => numberOf('weight', value, 2, 3))).toMatch(
      /^weight is .*: it must be a number from 2 to 3$/,
    )
  })
})

describe('a count', () => {
  it.each([2, 3])('may be %j, its bounds included', (value) => {
    expect(countOf('count', value, 2, 3)).toBe(value)
  })

  it.each([
    [2.5, 'count is 2.5: it must be an integer from 2 to 3'],
    ['2', 'count is "2": it must be an integer from 2 to 3'],
    [1, 'count is 1: it must be a number from 2 to 3'],
    [4, 'count is 4: it must be a number from 2 to 3'],
  ])('must not be %j', (value, message) => {
    expect(refusalOf(() => countOf('count', value, 2, 3))).toBe(message)
  })
})

describe('a duration', () => {
  it.each([
    ['1s', 1000],
    [1500, 1500],
    ['2s', 2000],
  ])('may be %j, its bounds included', (value, ms) => {
    expect(durationOf('every', value, '1s', '2s')).toBe(ms)
  })

  it.each([999, 2001])('must not be %j', (value) => {
    expect(refusalOf(() => durationOf('every', value, '1s', '2s'))).toBe(
      `every is ${value}: it must be from 1s to 2s`,
    )
  })

  it('is named in the error if it is not a duration', () => {
    expect(refusalOf(() => durationOf('every', 'soon', '1s', '2s'))).toContain('every')
  })
})

it('a choice must be one of the allowed values', () => {
  expect(oneOf('mode', 'b', ['a', 'b'])).toBe('b')
  expect(refusalOf(() => oneOf('mode', 'c', ['a', 'b']))).toBe(
    'mode is "c": it must be one of "a", "b"',
  )
})
