import { describe, expect, it } from 'vitest'
import { Checksum } from '../../../src/replica/state/checksum.ts'

const LEASE = {
  ...{ born: 5, at: 10, holder: 'h', ttl: 1000, grace: 50, endOfLife: 9000, parent: -1 },
  labels: { team: 'red' },
}
const CLAIM = {
  ...{ key: 'k', token: 7, at: 10, heldSince: 11, limit: 2, value: 'v' },
  mode: 'shared' as const,
}
const END = { reason: 'broken' as const, by: 'admin', why: 'reason' }

type Change = (checksum: Checksum) => void
const granted = (different: object): Change => {
  return (checksum) => checksum.granted(5, 3, { ...LEASE, ...different })
}
const claimed = (different: object): Change => {
  return (checksum) => checksum.claimed(7, 3, { ...CLAIM, ...different })
}

/** Everything that a checksum receives, and the same with one field changed at a time. */
const CASES: Record<string, readonly Change[]> = {
  granted: [
    granted({}),
    ...[{ holder: 'i' }, { ttl: 1001 }, { grace: 51 }, { at: 11 }, { endOfLife: 9001 }].map(
      granted,
    ),
    ...[{ parent: 1 }, { labels: { team: 'blue' } }, { labels: { crew: 'red' } }].map(granted),
    (checksum) => checksum.granted(6, 3, LEASE),
    (checksum) => checksum.granted(5, 4, LEASE),
  ],
  claimed: [
    claimed({}),
    ...[{ key: 'l' }, { token: 8 }, { at: 11 }, { heldSince: 0 }, { limit: 3 }].map(claimed),
    ...[{ value: 'w' }, { value: undefined }, { mode: 'exclusive' }].map(claimed),
  ],
  capped: [
    (checksum) => checksum.capped(5, 3, 10, 20, END),
    (checksum) => checksum.capped(5, 3, 11, 20, END),
    (checksum) => checksum.capped(5, 3, 10, 21, END),
    (checksum) => checksum.capped(5, 3, 10, 20, { ...END, why: 'another' }),
  ],
  ended: [
    (checksum) => checksum.ended(5, 3, 10, END),
    (checksum) => checksum.ended(5, 3, 11, END),
    (checksum) => checksum.ended(5, 3, 10, { ...END, reason: 'revoked' }),
    (checksum) => checksum.ended(5, 3, 10, { ...END, by: 'somebody' }),
  ],
  updated: [
    (checksum) => checksum.updated(5, 3, 10, 'k', 7, 'v'),
    (checksum) => checksum.updated(5, 3, 11, 'k', 7, 'v'),
    (checksum) => checksum.updated(5, 3, 10, 'l', 7, 'v'),
    (checksum) => checksum.updated(5, 3, 10, 'k', 8, 'v'),
    (checksum) => checksum.updated(5, 3, 10, 'k', 7, 'w'),
  ],
  released: [
    (checksum) => checksum.released(5, 3, 10, 'k', 7, END),
    (checksum) => checksum.released(5, 3, 11, 'k', 7, END),
    (checksum) => checksum.released(5, 3, 10, 'l', 7, END),
    (checksum) => checksum.released(5, 3, 10, 'k', 8, END),
    (checksum) => checksum.released(5, 3, 10, 'k', 7, { ...END, why: 'another' }),
  ],
  renewed: [
    (checksum) => checksum.renewed(3, 100, 5000),
    (checksum) => checksum.renewed(4, 100, 5000),
    (checksum) => checksum.renewed(3, 101, 5000),
    (checksum) => checksum.renewed(3, 100, 5001),
  ],
  answered: [(checksum) => checksum.answered('one'), (checksum) => checksum.answered('other')],
  'carried out': [
    (checksum) => checksum.carriedOut('granted'),
    (checksum) => checksum.carriedOut('busy'),
  ],
}

describe('the checksum of a replica', () => {
  it.each(Object.entries(CASES))('depends on every field of what was %s', (_what, tellings) => {
    const values = tellings.map((tell) => {
      const checksum = new Checksum()
      tell(checksum)
      return checksum.value
    })
    expect(new Set(values).size).toBe(tellings.length)
  })
})
