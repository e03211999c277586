import { describe, expect, it } from 'vitest'
import { LeaseholdError } from '../../src/index.ts'
import { isGone, storing } from '../../src/recipes/refusals.ts'

describe('a refusal', () => {
  it.each(['lease-ended', 'lease-not-found', 'claim-not-found'] as const)(
    'with the code %s means that the lease or the claim is gone',
    (code) => {
      expect(isGone(new LeaseholdError(code, 'gone'))).toBe(true)
    },
  )

  it('for another reason does not', () => {
    expect(isGone(new LeaseholdError('limit-exceeded', 'too long'))).toBe(false)
    expect(isGone(new LeaseholdError('unknown-outcome', 'no answer'))).toBe(false)
    expect(isGone(new Error('lease-ended'))).toBe(false)
  })
})

describe('a call that stores a value', () => {
  it('returns what the store returns', async () => {
    expect(await storing('the value', Promise.resolve(5))).toBe(5)
  })

  it('names the value that exceeds a limit, and keeps the cause', async () => {
    const cause = new LeaseholdError('limit-exceeded', 'it has 9 bytes: at most 8 are allowed')
    await expect(storing('the value', Promise.reject(cause))).rejects.toMatchObject({
      code: 'limit-exceeded',
      message: expect.stringMatching(/^the value .*it has 9 bytes: at most 8 are allowed/),
      cause,
    })
  })

  it('passes on any other error of the store', async () => {
    const refused = new LeaseholdError('lease-ended', 'gone')
    await expect(storing('the value', Promise.reject(refused))).rejects.toBe(refused)
    const error = new Error('bug')
    await expect(storing('the value', Promise.reject(error))).rejects.toBe(error)
  })
})
