import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseRight, VERBS, writeRight } from '../../src/access/index.ts'
import { allows } from '../../src/access/rights.ts'

const rights = (...texts: string[]) => texts.map(parseRight)

describe('a right', () => {
  it('covers the keys that begin with its prefix, and no others', () => {
    const some = rights('claim,read:jobs/')
    expect(allows(some, 'claim', 'jobs/1')).toBe(true)
    expect(allows(some, 'read', 'jobs/')).toBe(true)
    expect(allows(some, 'claim', 'jobs')).toBe(false)
    expect(allows(some, 'claim', 'other/jobs/1')).toBe(false)
    expect(allows(some, 'watch', 'jobs/1')).toBe(false)
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

  it('is written as it is read', () => {
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

  it.each(['claim', 'fly:jobs/', ':jobs/', ''])('is refused where it is none: %j', (text) => {
    expect(() => parseRight(text)).toThrowError(/such as 'claim,read:jobs\/'/)
  })
})
