import { describe, expect, it } from 'vitest'
import {
  ERRORS,
  isLeaseholdError,
  LeaseholdError,
  sha256,
  show,
  systemRandom,
  withoutPassword,
} from '../../src/port/index.ts'

describe('a value in an error message', () => {
  it.each([
    ['a "text"', '"a \\"text\\""'],
    ['x'.repeat(60), `"${'x'.repeat(60)}"`],
    ['x'.repeat(61), `"${'x'.repeat(57)}..."`],
    ['', '""'],
    [5, '5'],
    [null, 'null'],
    [undefined, 'undefined'],
    [true, 'true'],
    [[1, 2], 'an array'],
    [{ toString: 1 }, 'an object'],
    [() => {}, 'a function'],
    [Symbol('s'), 'Symbol(s)'],
  ])('%j is shown as %s', (value, text) => {
    expect(show(value)).toBe(text)
  })

  it('has no password', () => {
    expect(withoutPassword('redis://me:secret@host:6379/1')).toBe('redis://…@host:6379/1')
    expect(withoutPassword('postgres://me:a@b@host/db')).toBe('postgres://…@host/db')
    expect(withoutPassword('redis://host:6379')).toBe('redis://host:6379')
    expect(withoutPassword('me@host')).toBe('me@host')
  })

  it('has no signature of a shared access', () => {
    const azure = 'https://account.blob.core.windows.net/leases'
    expect(withoutPassword(`${azure}?sig=a%2Fb%3D&se=2027&sig=c`)).toBe(
      `${azure}?sig=…&se=2027&sig=…`,
    )
    expect(withoutPassword(`${azure}?design=a`)).toBe(`${azure}?design=a`)
  })
})

describe('an error', () => {
  it('has an outcome by its code, and the details it was given', () => {
    const cause = new Error('disk')
    const details = {
      reason: 'revoked',
      by: 'me',
      why: 'test',
      token: 3,
      highest: 5,
      cause,
    } as const
    const error = new LeaseholdError('storage-failed', 'no', details)
    expect(error).toMatchObject({ ...details, code: 'storage-failed', message: 'no' })
    expect(error.name).toBe('LeaseholdError')
    expect(error.cause).toBe(cause)
    expect(error.outcome).toBe('unknown')
    expect(new LeaseholdError('lost', 'gone').outcome).toBe('refused')
    expect(Object.hasOwn(new LeaseholdError('lost', 'gone'), 'cause')).toBe(false)
  })

  it.each(Object.entries(ERRORS))(
    '%s is refused or unknown, and says what it means',
    (code, { outcome, meaning }) => {
      const unknown = ['storage-failed', 'unknown-outcome']
      expect(outcome).toBe(unknown.includes(code) ? 'unknown' : 'refused')
      expect(meaning).toMatch(/^[A-Z].*\.$/)
    },
  )

  it('is recognised by its class, and by its code if one is given', () => {
    const error = LeaseholdError.from({ code: 'lost', message: 'gone', end: { reason: 'expired' } })
    expect(error).toMatchObject({ code: 'lost', message: 'gone', reason: 'expired' })
    expect(isLeaseholdError(error)).toBe(true)
    expect(isLeaseholdError(error, 'lost')).toBe(true)
    expect(isLeaseholdError(error, 'closed')).toBe(false)
    expect(isLeaseholdError({ code: 'lost' })).toBe(false)
    expect(isLeaseholdError({ code: 'lost' }, 'lost')).toBe(false)
  })
})

describe('an error of another copy of the package', () => {
  const other = (brand: unknown) =>
    Object.assign(new Error('gone'), { code: 'lost', [Symbol.for('leasehold.error')]: brand })

  it('is recognised like one of this copy', () => {
    expect(other(true)).toBeInstanceOf(LeaseholdError)
    expect(isLeaseholdError(other(true), 'lost')).toBe(true)
  })

  it('is not recognised if it has no brand, or is not an Error', () => {
    expect(other(undefined)).not.toBeInstanceOf(LeaseholdError)
    expect(other('yes')).not.toBeInstanceOf(LeaseholdError)
    expect({ ...other(true) }).not.toBeInstanceOf(LeaseholdError)
    expect(undefined).not.toBeInstanceOf(LeaseholdError)
  })
})

describe('identifiers and hashes', () => {
  it('are 16 random bytes, and SHA-256, in base64url', () => {
    expect(systemRandom.id()).toMatch(/^[\w-]{22}$/)
    expect(systemRandom.id()).not.toBe(systemRandom.id())
    expect(sha256('abc')).toBe('ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0')
  })

  it('and jitter is from 0 to below 1', () => {
    const numbers = Array.from({ length: 50 }, () => systemRandom.next())
    expect(numbers.every((number) => number >= 0 && number < 1)).toBe(true)
    expect(new Set(numbers).size).toBeGreaterThan(40)
  })
})
