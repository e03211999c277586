import { describe, expect, it } from 'vitest'
import { expectedHold } from '../../../../src/recipes/pool/schedule/forecast.ts'
import { added, expectation, observed } from '../../../../src/recipes/pool/usage/hold-times.ts'
import {
  addTo,
  charge,
  decayed,
  EMPTY_RECORD,
  type Held,
  type HoldTimes,
  type UsageRecord,
  usageOf,
} from '../../../../src/recipes/pool/usage/usage.ts'
import { HOUR } from '../state.ts'

describe('usage', () => {
  it('counts half after a half-life, and never more than it was', () => {
    const account = { used: 8, at: 1000 }
    expect(decayed(account, 1000, 100)).toBe(8)
    expect(decayed(account, 1100, 100)).toBe(4)
    expect(decayed(account, 1300, 100)).toBe(1)
    expect(decayed(account, 500, 100)).toBe(8)
  })

  it('is time times resources for short holds, and has an upper limit', () => {
    expect(charge(2, 1, 1e9)).toBeCloseTo(2)
    expect(charge(1, 1e12, 1000)).toBeCloseTo(1000 / Math.LN2)
    expect(charge(1, -5, 1000)).toBe(0)
    // The same in one step and in two; the first has decayed when the second ends.
    const twice = decayed({ used: charge(1, 500, 1000), at: 0 }, 500, 1000) + charge(1, 500, 1000)
    expect(charge(1, 1000, 1000)).toBeCloseTo(twice)
  })

  it('is added up at the later of both times', () => {
    const early = { used: 8, at: 1000 }
    const late = { used: 3, at: 1100 }
    expect(addTo(undefined, early, 100)).toBe(early)
    expect(addTo(early, late, 100)).toEqual({ used: 7, at: 1100 })
    expect(addTo(late, early, 100)).toEqual({ used: 7, at: 1100 })
  })

  it('counts a held permit as booked, or as held if that is longer', () => {
    const held = { token: 1, tenant: 't', cost: 2, since: 1000, booked: 500 }
    const used = (now: number) => usageOf([], [held], now, 1e9).get('t')!
    expect(used(1000)).toBeCloseTo(1000, 2)
    expect(used(1500)).toBeCloseTo(1000, 2)
    expect(used(2000)).toBeCloseTo(2000, 2)
  })

  it('is the sum of all records, with open permits once, and as booked if they are gone', () => {
    const open = { token: 1, tenant: 't', cost: 1, since: 0, booked: 1000 }
    const records: UsageRecord[] = [
      { ...EMPTY_RECORD, accounts: { t: { used: 5, at: 1000 }, u: { used: 7, at: 1000 } } },
      { ...EMPTY_RECORD, accounts: { t: { used: 6, at: 1000 } }, open: [open] },
    ]
    const held: Held = { ...open, booked: 3000 }
    const used = (...alive: Held[]) => usageOf(records, alive, 1000, 1e9)
    expect(used(held).get('t')).toBeCloseTo(3011, 1)
    expect(used().get('t')).toBeCloseTo(1011, 1)
    expect(used().get('u')).toBeCloseTo(7)
    expect([...used().keys()]).toEqual(['t', 'u'])
  })

  it('of a vanished permit decays from the end of its booking', () => {
    const open = [{ token: 1, tenant: 't', cost: 1, since: 0, booked: 1000 }]
    const later = usageOf([{ ...EMPTY_RECORD, open }], [], 2000, 1000).get('t')!
    expect(later).toBeCloseTo(charge(1, 1000, 1000) / 2)
  })
})

describe('the hold time of a kind', () => {
  const seen = (...times: number[]) =>
    times.reduce<HoldTimes | undefined>((all, ms) => observed(all, ms), undefined)

  it('is accurate to about a quarter', () => {
    for (const ms of [1000, 5000, 60_000, HOUR, 30 * 24 * HOUR]) {
      const { rest } = expectation(seen(ms))!
      expect(Math.max(rest / ms, ms / rest)).toBeLessThan(1.25)
    }
  })

  it('is unknown without observations', () => {
    expect(expectation(undefined)).toBeUndefined()
    expect(expectation({})).toBeUndefined()
  })

  it('is at least about a second, and at most about two months', () => {
    expect(seen(0)).toEqual(seen(1000))
    expect(seen(1)).toEqual({ 0: 1 })
    expect(seen(1e15)).toEqual({ 45: 1 })
    expect(seen(1001)).toEqual({ 1: 1 })
    expect(seen(2000)).toEqual({ 2: 1 })
  })

  it('is the weighted mean of the observations', () => {
    const [short, long] = [expectation(seen(1000))!.rest, expectation(seen(HOUR))!.rest]
    const both = expectation(seen(1000, HOUR, HOUR, HOUR))!
    expect(both.seen).toBe(4)
    expect(both.rest).toBeCloseTo((short + 3 * long) / 4)
  })

  it('is the mean of longer observations for a permit that is already held', () => {
    const long = expectation(seen(HOUR))!.rest
    const times = seen(1000, 1000, HOUR)
    expect(expectation(times, 60_000)).toEqual({ rest: long - 60_000, seen: 3 })
    // It has outlived all observations: half of its time.
    expect(expectation(times, 10 * HOUR)).toEqual({ rest: 5 * HOUR, seen: 3 })
    expect(expectation(times, long)).toEqual({ rest: long / 2, seen: 3 })
  })

  it('adapts: after a hundred observations the old ones count half', () => {
    const sum = (times: HoldTimes) => Object.values(times).reduce((all, count) => all + count, 0)
    const hundred = seen(...Array.from({ length: 100 }, () => 1000))!
    expect(hundred).toEqual({ 0: 100 })
    const more = observed(hundred, HOUR)
    expect(sum(more)).toBe(50.5)
    expect(added({ 0: 100, 5: 0.15 }, { 3: 1 })).toEqual({ 0: 50, 3: 0.5 })
    expect(added({ 0: 100, 5: 0.2 }, { 3: 1 })).toEqual({ 0: 50, 3: 0.5, 5: 0.1 })
    expect(added({ 0: 1 }, { 0: 2, 1: 3 })).toEqual({ 0: 3, 1: 3 })
  })

  it('is used from three observations of all processes', () => {
    const record = (kind: string, times: HoldTimes): UsageRecord => ({
      ...EMPTY_RECORD,
      kinds: { [kind]: times },
    })
    const hour = expectation(seen(HOUR))!.rest
    expect(expectedHold([record('k', seen(HOUR, HOUR)!)], 'k')).toBeUndefined()
    const two = [record('k', seen(HOUR, HOUR)!), record('k', seen(HOUR)!)]
    expect(expectedHold(two, 'k')).toBeCloseTo(hour)
    expect(expectedHold(two, 'other')).toBeUndefined()
    expect(expectedHold(two, 'toString')).toBeUndefined()
  })
})
