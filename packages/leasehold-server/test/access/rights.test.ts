import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { everybody } from '../../src/access/identity/principal.ts'
import { parseRight, VERBS, writeRight } from '../../src/access/index.ts'
import {
  allows,
  allowsKey,
  allowsOthers,
  allowsSomewhere,
  forbidden,
} from '../../src/access/rights.ts'

const rights = (...texts: string[]) => texts.map(parseRight)

describe('a right', () => {
  it('covers the keys with its prefix, and no others', () => {
    const some = rights('claim,read:jobs/')
    expect(allows(some, 'claim', 'jobs/1')).toBe(true)
    expect(allows(some, 'read', 'jobs/')).toBe(true)
    expect(allows(some, 'claim', 'jobs')).toBe(false)
    expect(allows(some, 'claim', 'other/jobs/1')).toBe(false)
    expect(allows(some, 'watch', 'jobs/1')).toBe(false)
    expect(allowsOthers(some, 'read', 'jobs/1')).toBe(true)
    expect(allowsOthers(some, 'read', 'other/jobs/')).toBe(false)
  })

  it('never covers more than its own prefix: a wider prefix would show other keys', () => {
    const some = rights('read,watch:jobs/')
    expect(allows(some, 'read', 'job')).toBe(false)
    expect(allows(some, 'watch', '')).toBe(false)
  })

  it("reaches the server's own keys only with admin", () => {
    expect(allows(rights('claim,read,watch:'), 'read', 'leasehold/tokens/x')).toBe(false)
    expect(allows(rights('claim,read,watch:leasehold/'), 'claim', 'leasehold/tokens/x')).toBe(false)
    expect(allows(rights('claim,read,watch:'), 'watch', 'lease')).toBe(false)
    expect(allows(rights('all:'), 'read', 'leasehold/tokens/x')).toBe(true)
    expect(allows(rights('all:'), 'watch', '')).toBe(true)
  })

  it('reaches the prefixes around the server’s own keys as far as it covers both', () => {
    expect(allows(rights('watch:lease', 'admin:leasehold/'), 'watch', 'lease')).toBe(true)
    expect(allows(rights('watch:lease', 'admin:leasehold/x'), 'watch', 'lease')).toBe(false)
    expect(allows(rights('watch:lease'), 'watch', 'leaseholder')).toBe(true)
    expect(allows(rights('admin:leasehold/'), 'read', 'leasehold/tokens/')).toBe(true)
    expect(allows(rights('admin:leasehold/tokens/'), 'read', 'leasehold/')).toBe(false)
    expect(allowsOthers(rights('read:'), 'read', '')).toBe(true)
    expect(allowsOthers(rights('read:'), 'read', 'leasehold/')).toBe(false)
    expect(allowsOthers(rights('read:'), 'watch', '')).toBe(false)
    expect(allowsOthers(rights('read:jobs/'), 'read', 'jobs')).toBe(false)
    expect(allowsKey(rights('read:'), 'read', 'leasehold/x')).toBe(false)
    expect(allowsKey(rights('admin:leasehold/'), 'read', 'leasehold/x')).toBe(true)
    expect(allowsKey(rights('admin:leasehold/'), 'read', 'jobs')).toBe(false)
    expect(allowsKey(rights('read:jobs/'), 'read', 'x/jobs/')).toBe(false)
  })

  it.each([
    ['claim:jobs/', true],
    ['read:jobs/', false],
    ['claim:leasehold/', false],
    ['claim:leasehold/tokens/', false],
    ['admin:leasehold/tokens/', true],
    ['admin:lease', true],
    ['admin:', true],
    ['admin:jobs/', false],
    ['admin:leaseholder', false],
  ])('reaches some key to claim: %s is %s', (text, reaches) => {
    expect(allowsSomewhere(rights(text), 'claim')).toBe(reaches)
  })

  it('is named in a refusal, as admin for the server’s own keys', () => {
    expect(forbidden('ann', 'read', 'jobs/')).toMatchObject({ code: 'forbidden' })
    expect(forbidden('ann', 'read', 'jobs/').message).toContain("'read:jobs/'")
    expect(forbidden('ann', 'read', 'leasehold/x').message).toContain("'admin:leasehold/x'")
  })

  it('is written in short if it has all verbs, and its prefix may have colons', () => {
    expect(writeRight(parseRight('all:a:b'))).toBe('all:a:b')
    expect(parseRight('read,all:').verbs).toEqual([...VERBS])
    expect(parseRight('read,watch:').verbs).toEqual(['read', 'watch'])
  })

  it('is printed as it is parsed', () => {
    const verbs = fc.uniqueArray(fc.constantFrom(...VERBS), { minLength: 1 })
    fc.assert(
      fc.property(verbs, fc.string(), (some, prefix) => {
        const right = { verbs: some, prefix }
        const again = parseRight(writeRight(right))
        expect([...again.verbs].sort()).toEqual([...some].sort())
        expect(again.prefix).toBe(prefix)
      }),
    )
  })

  it('allows everything to everybody, if no token exists', () => {
    for (const verb of VERBS) expect(allows(everybody().rights, verb, '')).toBe(true)
  })

  it.each([
    ['claim', 'has no colon'],
    ['fly:jobs/', 'has the unknown verb "fly"'],
    [':jobs/', 'has the unknown verb ""'],
    ['', 'has no colon'],
  ])('is refused if it is invalid: %j', (text, what) => {
    expect(() => parseRight(text)).toThrowError(what)
    expect(() => parseRight(text)).toThrowError(/such as 'claim,read:jobs\/'/)
    expect(() => parseRight(text)).toThrowError(
      expect.objectContaining({ code: 'invalid-argument' }),
    )
  })
})
