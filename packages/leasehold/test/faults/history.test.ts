import { describe, expect, it } from 'vitest'
import { type CheckName, faultsOf, type History, type Holding, type Write } from './history.ts'

const alice: Holding = {
  client: 'alice',
  key: 'gpu',
  token: 5,
  requested: 0,
  notified: 10,
  believedUntil: 110,
  releasedAt: 60,
}
const bob: Holding = {
  ...alice,
  client: 'bob',
  token: 6,
  requested: 20,
  notified: 70,
  releasedAt: 90,
}
const write: Write = { client: 'alice', key: 'gpu', token: 5, accepted: true, newest: 5 }

const { releasedAt: _, ...keepsIt } = alice
const faulty: [CheckName, History][] = [
  ['two holders at once', { holdings: [keepsIt, bob], writes: [] }],
  ['two holders at once', { holdings: [bob, { ...alice, releasedAt: 80 }], writes: [] }],
  ['a token that repeats', { holdings: [alice, { ...bob, token: 5 }], writes: [] }],
  ['a token that goes down', { holdings: [alice, { ...bob, token: 4 }], writes: [] }],
  [
    'an acknowledged lease that was lost',
    { holdings: [{ ...keepsIt, lost: { at: 50, reason: 'expired' } }], writes: [] },
  ],
  [
    'a stale write that was accepted',
    { holdings: [], writes: [{ ...write, token: 6, newest: 6 }, write] },
  ],
  ['the newest write that was refused', { holdings: [], writes: [{ ...write, accepted: false }] }],
]

describe('the checks of a history', () => {
  it.each(faulty)('find %s, and nothing else', (check, history) => {
    const faults = faultsOf(history)
    expect(faults.map((fault) => fault.split(':')[0])).toEqual([check])
    expect(faultsOf(history, [check])).toEqual([])
  })

  it('find no violation in a correct history', () => {
    const writes = [
      write,
      { ...write, client: 'bob', token: 6, newest: 6 },
      { ...write, accepted: false, newest: 6 },
    ]
    const expired = { ...keepsIt, lost: { at: 120, reason: 'unreachable' } }
    const after = { ...bob, notified: 130, releasedAt: 140 }
    expect(faultsOf({ holdings: [bob, alice], writes })).toEqual([])
    expect(faultsOf({ holdings: [expired, after], writes: [] })).toEqual([])
  })

  it('do not require rising tokens for concurrent requests', () => {
    const first = { ...alice, notified: 65, releasedAt: 66, believedUntil: 66 }
    expect(faultsOf({ holdings: [first, { ...bob, token: 4 }], writes: [] })).toEqual([])
  })
})
