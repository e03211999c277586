import { describe, expect, it } from 'vitest'
import { Kernel } from '../../../src/kernel/index.ts'
import type { Changed, Claimed, Granted, KeyReading } from '../../../src/port/index.ts'

const NOW = 1_000_000
/** More claims on one key than are searched one by one. */
const MANY = 200

function begin() {
  const kernel = new Kernel()
  const grant = () => kernel.grant({ holder: 'alice', ttl: 1000 }, NOW) as Granted
  const { lease } = grant()
  const claim = (key: string, of = lease) =>
    (kernel.claim({ lease: of, claims: [{ key }] }, NOW) as Claimed).token
  const release = (key: string, token: number, of = lease) =>
    kernel.release({ lease: of, keys: [key], token }, NOW)
  const tokensOn = (key: string) =>
    (kernel.reader.read({ key }) as KeyReading).claims.map(({ token }) => token)
  return { kernel, lease, grant, claim, release, tokensOn }
}

describe('a long queue on a key', () => {
  it('finds each claim by its token, until it is removed', () => {
    const { claim, release, tokensOn } = begin()
    const tokens = Array.from({ length: MANY }, () => claim('a'))
    const others = Array.from({ length: 3 }, () => claim('b'))
    expect(tokensOn('a')).toEqual(tokens)
    expect(release('b', others.pop()!)).not.toHaveProperty('refusal')
    // From the middle to both ends.
    const order = tokens.map((_, at) => tokens[(at * 77 + 100) % MANY]!)
    const left = new Set(tokens)
    for (const token of order) {
      expect((release('a', token) as Changed).revision).toBeGreaterThan(token)
      expect(release('a', token)).toMatchObject({ refusal: { code: 'claim-not-found' } })
      left.delete(token)
      expect(tokensOn('a')).toEqual([...left])
    }
    for (const token of others) expect(release('b', token)).not.toHaveProperty('refusal')
    const again = claim('a')
    expect(tokensOn('a')).toEqual([again])
    expect(release('a', again)).not.toHaveProperty('refusal')
  })

  it('that has become short finds a new claim by its token', () => {
    const { claim, release } = begin()
    const tokens = Array.from({ length: MANY }, () => claim('a'))
    for (const token of tokens.slice(1)) release('a', token)
    const late = claim('a')
    expect(release('a', late)).not.toHaveProperty('refusal')
    expect(release('a', tokens[0]!)).not.toHaveProperty('refusal')
  })

  it('does not let one lease release the claim of another', () => {
    const { claim, release, grant } = begin()
    const other = grant().lease
    const tokens = Array.from({ length: MANY }, () => claim('a', other))
    expect(release('a', tokens[5]!)).toMatchObject({ refusal: { code: 'claim-not-found' } })
    expect(release('a', tokens[5]!, other)).not.toHaveProperty('refusal')
  })

  it('is removed when its lease ends, and the key can be used again', () => {
    const { kernel, claim, release, tokensOn, grant } = begin()
    const other = grant().lease
    for (let count = 0; count < MANY; count++) claim('a', other)
    kernel.revoke({ target: { lease: other } }, NOW)
    expect(tokensOn('a')).toEqual([])
    const token = claim('a')
    expect(release('a', token)).not.toHaveProperty('refusal')
    expect(release('a', token)).toMatchObject({ refusal: { code: 'claim-not-found' } })
  })
})
