import { describe, expect, it } from 'vitest'
import type { Place } from '../../../src/client/index.ts'
import { definitionOf } from '../../../src/recipes/pool/definition/definition.ts'
import { keysOf, poolSnapshot } from '../../../src/recipes/pool/pool-snapshot.ts'
import { statusOf } from '../../../src/recipes/pool/status.ts'
import { usageRecordFrom } from '../../../src/recipes/pool/usage/usage.ts'

const KEYS = keysOf('p')
const DEFINITION = definitionOf({
  resources: [{ name: 'a', shares: 4 }, { name: 'b' }],
  tenants: { y: {}, x: {} },
})

const claim = (token: number, value: unknown, claimedAt = 0) => ({
  token,
  holder: `h${token}`,
  claimedAt,
  value: typeof value === 'string' ? value : JSON.stringify(value),
})

type Claims = Record<string, ReturnType<typeof claim>[]>

/** The snapshot of a pool with these claims. */
function seen(claims: Claims, definition = DEFINITION) {
  const view = {
    keys: () => Object.keys(claims)[Symbol.iterator](),
    places: (key: string) => (claims[key] ?? []) as unknown as Place[],
    age: () => 3,
  }
  const snapshot = poolSnapshot(view, 'p', KEYS, definition)
  const status = () => statusOf(snapshot, view as never, KEYS.notice, 1000, new Map())
  return { snapshot, status }
}

describe('a snapshot of a pool', () => {
  it('has the readable waiters and notices', () => {
    const { snapshot } = seen({
      [KEYS.queue]: [claim(1, { tenant: 'x' }), claim(2, 'no JSON'), claim(3, { tenant: 'y' })],
      [`${KEYS.notice}7`]: [claim(4, { permit: 7, line: 1, keys: ['k'] })],
      [`${KEYS.notice}8`]: [claim(5, 'no JSON')],
      [`${KEYS.notice}9`]: [],
      'pool/p/other': [claim(6, { permit: 9, line: 1, keys: ['k'] })],
    })
    expect(snapshot.waiters.map(({ token }) => token)).toEqual([1, 3])
    expect(snapshot.preempted).toEqual([{ permit: 7, waiter: 1, keys: ['k'] }])
  })

  it('has permits that cost as much as they hold of each resource', () => {
    const both = claim(1, { tenant: 'x' })
    const { snapshot } = seen({
      'pool/p/r/a/0': [both],
      'pool/p/r/a/2': [both],
      'pool/p/r/b': [both],
      'pool/p/r/a/3': [claim(2, 'no JSON')],
    })
    expect(snapshot.occupants).toMatchObject([
      { token: 1, cost: 1.5, keys: ['pool/p/r/a/0', 'pool/p/r/a/2', 'pool/p/r/b'] },
      { token: 2, cost: 0.25, tenant: '' },
    ])
  })

  it('has the latest stored time as its time', () => {
    const at = (queued: number, held: number, booked: number) =>
      seen({
        [KEYS.queue]: [claim(1, { tenant: 'x' }, queued)],
        'pool/p/r/b': [claim(2, { tenant: 'x' }, held)],
        [KEYS.records]: [claim(3, { accounts: { x: { used: 1, at: booked } } })],
      }).snapshot.latest
    expect([at(30, 20, 10), at(10, 30, 20), at(20, 10, 30)]).toEqual([30, 30, 30])
  })

  it('has an empty record for an unreadable one', () => {
    const empty = { accounts: {}, open: [], kinds: {} }
    expect([usageRecordFrom(undefined), usageRecordFrom('no JSON'), usageRecordFrom('{}')]).toEqual(
      [empty, empty, empty],
    )
  })
})

describe('the status of a pool', () => {
  it('has its tenants in order, with their unserved waiters', () => {
    const { status } = seen({
      [KEYS.queue]: [claim(1, { tenant: 'x' }), claim(2, { tenant: 'x' })],
      'pool/p/r/b': [claim(3, { tenant: 'x', line: 1 })],
    })
    expect(status().tenants).toMatchObject([
      { tenant: 'x', waiting: 1, holds: 1 },
      { tenant: 'y', waiting: 0, holds: 0 },
    ])
  })

  it('has tenants in order also if any tenant is admitted', () => {
    const anybody = definitionOf({ resources: [{ name: 'a' }, { name: 'b' }] })
    const claims = {
      'pool/p/r/a': [claim(3, { tenant: 'y' })],
      'pool/p/r/b': [claim(4, { tenant: 'x' })],
    }
    const { tenants } = seen(claims, anybody).status()
    expect(tenants.map(({ tenant }) => tenant)).toEqual(['x', 'y'])
  })

  it('shows no usage for a pool that was never used', () => {
    expect(
      seen({})
        .status()
        .tenants.map(({ used }) => used),
    ).toEqual([0, 0])
  })

  it('shows which permits are preempted', () => {
    const { status } = seen({
      'pool/p/r/b': [claim(3, { tenant: 'x' })],
      'pool/p/r/a/0': [claim(4, { tenant: 'x' })],
      [`${KEYS.notice}3`]: [claim(5, { permit: 3, line: 1, keys: [] })],
    })
    const noticed = status().resources.map(({ permits }) => permits.map((it) => it.noticed))
    expect(noticed).toEqual([[false], [true]])
  })
})
