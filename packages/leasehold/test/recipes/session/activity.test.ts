import { describe, expect, it } from 'vitest'
import type { Claim } from '../../../src/port/index.ts'
import {
  ActivityCache,
  isRenewalDue,
  newActivity,
  noteReading,
} from '../../../src/recipes/session/activity.ts'
import { decode, encode } from '../../../src/recipes/session/record.ts'

describe('the last renewal of a session, derived from reads', () => {
  it('is after the last read before its deadline moved', () => {
    const activity = newActivity('1.1', 0)
    noteReading(activity, 1000, 10)
    noteReading(activity, 1000, 20)
    noteReading(activity, 2000, 30)
    expect(activity.renewedAfter).toBe(20)
  })

  it('is not derived from an old answer', () => {
    const activity = newActivity('1.1', 0)
    noteReading(activity, 1000, 10)
    noteReading(activity, 2000, 30)
    // From a replica that lags: somebody may have renewed between 30 and 40.
    noteReading(activity, 1000, 40)
    noteReading(activity, 3000, 50)
    expect(activity.renewedAfter).toBe(30)
  })

  it('is due again after a tenth of the ttl', () => {
    const activity = newActivity('1.1', 100)
    expect([isRenewalDue(activity, 1000, 199), isRenewalDue(activity, 1000, 200)]).toEqual([
      false,
      true,
    ])
  })
})

describe('the sessions that a process has seen', () => {
  it('are identified by their lease: an old lease says nothing about its successor', () => {
    const sights = new ActivityCache()
    const activity = sights.set('ref', newActivity('1.1', 5))
    expect(sights.get('ref', '1.1')).toBe(activity)
    expect(sights.get('ref', '1.2')).toBeUndefined()
    expect(sights.last('ref')).toBe(activity)
    sights.delete('ref')
    expect(sights.get('ref', '1.1')).toBeUndefined()
  })

  it('are at most 10,000: the least recently used is forgotten', () => {
    const sights = new ActivityCache()
    for (let i = 0; i < 10_000; i++) sights.set(`${i}`, newActivity('1.1', 0))
    expect(sights.last('0')).toBeDefined()
    sights.set('0', newActivity('1.1', 0))
    sights.set('one more', newActivity('1.1', 0))
    expect(sights.last('1')).toBeUndefined()
    expect(sights.last('0')).toBeDefined()
    expect(sights.last('2')).toBeDefined()
  })
})

describe('the stored record of a session', () => {
  const claim = { key: 'session/main/id/x', lease: '1.1', token: 1, holder: 'ada' } as Claim

  it.each([
    { user: 'ada', ttl: 1000, max: 5000, since: 7, data: '{"a":"line\\n"}' },
    { user: undefined, ttl: Infinity, max: Infinity, since: undefined, data: 'null' },
  ])('is read as it was written: $ttl $max', (record) => {
    expect(decode({ ...claim, value: encode(record) })).toEqual(record)
  })
})
