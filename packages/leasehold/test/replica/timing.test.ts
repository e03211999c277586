import { describe, expect, it } from 'vitest'
import { LogClock } from '../../src/replica/shared-log/log-clock.ts'
import { LeaseTimers } from '../../src/replica/state/lease-timers.ts'

const LEASE = { born: 1, at: 0, holder: 'h', parent: -1, labels: undefined }

describe('the timers of a replica', () => {
  it('count from when this replica applied the grant or the renewal', () => {
    const timers = new LeaseTimers()
    timers.now = 100
    timers.granted(1, 0, { ...LEASE, ttl: 1000, grace: 50, endOfLife: Infinity })
    expect(timers.due(1149, 10)).toEqual([])
    timers.now = 1149
    timers.renewed(0, Infinity, Infinity)
    expect(timers.due(2198, 10)).toEqual([])
    expect(timers.due(2199, 10)).toEqual([0])
  })

  it('wait as long as the life that a holder was promised', () => {
    const timers = new LeaseTimers()
    timers.granted(1, 0, { ...LEASE, ttl: 500, grace: 0, endOfLife: 600 })
    timers.now = 400
    // The member that renewed it applied the grant later, so it promised more than is left here.
    timers.renewed(0, 300, 300)
    expect(timers.due(699, 10)).toEqual([])
    expect(timers.due(700, 10)).toEqual([0])
  })

  it('wait for the full ttl after a renewal by a member that knew of no limit', () => {
    const timers = new LeaseTimers()
    timers.granted(1, 0, { ...LEASE, ttl: 500, grace: 0, endOfLife: 600 })
    timers.now = 400
    timers.renewed(0, Infinity, Infinity)
    expect(timers.due(899, 10)).toEqual([])
    expect(timers.due(900, 10)).toEqual([0])
    expect(timers.isAtEndOfLife(0)).toBe(true)
  })

  it('adopt the count of a member that has counted for longer', () => {
    const timers = new LeaseTimers()
    timers.granted(1, 0, { ...LEASE, ttl: 500, grace: 0, endOfLife: 10_000 })
    timers.now = 400
    timers.renewed(0, 300, 300)
    expect(timers.remaining(0)).toBe(300)
    expect(timers.due(699, 10)).toEqual([])
    expect(timers.due(700, 10)).toEqual([0])
  })

  it('know whether the ttl or the end of its life comes first', () => {
    const timers = new LeaseTimers()
    timers.granted(1, 0, { ...LEASE, ttl: 10, grace: 5, endOfLife: Infinity })
    timers.granted(2, 1, { ...LEASE, born: 2, ttl: 10, grace: 5, endOfLife: 12 })
    expect(timers.due(15, 10)).toEqual([0, 1])
    expect([timers.isAtEndOfLife(0), timers.isAtEndOfLife(1)]).toEqual([false, true])
  })

  it('return a proposed lease again if it still exists, but not at once', () => {
    const timers = new LeaseTimers()
    timers.granted(1, 0, { ...LEASE, ttl: 10, grace: 0, endOfLife: Infinity })
    timers.granted(2, 1, { ...LEASE, born: 2, ttl: 10, grace: 0, endOfLife: Infinity })
    expect(timers.due(10, 10)).toEqual([0, 1])
    timers.ended(3, 1, 10, { reason: 'expired' })
    expect(timers.due(1009, 10)).toEqual([])
    expect(timers.due(1010, 10)).toEqual([0])
  })
})

describe('the timers of many leases with one deadline', () => {
  it('return each lease once, even if most end in between', () => {
    const timers = new LeaseTimers()
    for (let slot = 0; slot < 5000; slot++) {
      timers.granted(slot + 1, slot, {
        ...{ ...LEASE, born: slot + 1 },
        ...{ ttl: 10, grace: 0, endOfLife: Infinity },
      })
    }
    const first = timers.due(10, 4000)
    expect(first).toHaveLength(4000)
    for (const slot of first.slice(10)) timers.ended(6000, slot, 10, { reason: 'expired' })
    const next = timers.due(10, 5000)
    expect(next).toHaveLength(1000)
    expect(new Set([...first, ...next]).size).toBe(5000)
    // Grants make it schedule again: a proposed lease is still not proposed again at once.
    for (const slot of next) timers.ended(7000, slot, 10, { reason: 'expired' })
    for (const slot of next) {
      const long = { ttl: 9000, grace: 0, endOfLife: Infinity }
      timers.granted(8000, slot, { ...LEASE, born: 8000, ...long })
    }
    expect(timers.due(1009, 5000)).toEqual([])
    expect(timers.due(1010, 5000)).toEqual(first.slice(0, 10))
  })

  it('count again from a renewal that came after the proposal', () => {
    const timers = new LeaseTimers()
    timers.granted(1, 0, { ...LEASE, ttl: 10, grace: 0, endOfLife: Infinity })
    expect(timers.due(10, 10)).toEqual([0])
    timers.now = 11
    timers.renewed(0, Infinity, Infinity)
    expect(timers.due(20, 10)).toEqual([])
    expect(timers.due(21, 10)).toEqual([0])
  })
})

describe('the timers of many short leases', () => {
  it('do not keep ended leases until their deadline', () => {
    const timers = new LeaseTimers()
    for (let born = 1; born <= 10_000; born++) {
      timers.granted(born, 0, { ...LEASE, born, ttl: 3_600_000, grace: 0, endOfLife: Infinity })
      timers.ended(born, 0, 0, { reason: 'released' })
    }
    expect(timers.size).toBeLessThan(2000)
    timers.granted(1, 0, { ...LEASE, ttl: 10, grace: 0, endOfLife: Infinity })
    expect(timers.due(10, 10)).toEqual([0])
  })
})

describe('the time of the log, as a replica estimates it', () => {
  it('starts with its own clock, and follows entries that are ahead', () => {
    const clock = new LogClock()
    expect(clock.at(5)).toBe(5)
    clock.observe(1000, 10)
    expect(clock.at(15)).toBe(1005)
    clock.observe(1001, 20)
    expect(clock.at(20)).toBe(1010)
    clock.observe(2000, 30)
    expect(clock.at(31)).toBe(2001)
  })
})
