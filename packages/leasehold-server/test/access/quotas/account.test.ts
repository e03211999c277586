import { TestClock } from 'leasehold/testing'
import { describe, expect, it } from 'vitest'
import { Account, Pace } from '../../../src/access/quotas/account.ts'
import { checkTtl, checkValue, Usage } from '../../../src/access/quotas/quota.ts'
import { refused } from '../scene.ts'

describe('the pace of counting', () => {
  it('lets the next count wait twenty times as long as the last one took', async () => {
    const clock = new TestClock()
    const pace = new Pace()
    expect(pace.isDue(clock)).toBe(true)
    await pace.time(clock, () => clock.advance(10))
    expect(pace.took).toBe(10)
    await clock.advance(199)
    expect(pace.isDue(clock)).toBe(false)
    await clock.advance(1)
    expect(pace.isDue(clock)).toBe(true)
    const failing = pace.time(clock, async () => {
      await clock.advance(5)
      throw new Error('the store is away')
    })
    await expect(failing).rejects.toThrowError('away')
    expect([pace.took, pace.isDue(clock)]).toEqual([5, false])
  })
})

describe('an account', () => {
  it('counts the reports of each lease', () => {
    const account = new Account('ann')
    account.set('1', 2, 'tag')
    account.set('2', 3, undefined)
    expect(account.usage).toMatchObject({ leases: 2, claims: 5 })
    account.set('1', 1, 'other')
    expect(account.usage).toMatchObject({ leases: 2, claims: 4 })
    expect(account.leases.get('1')).toEqual({ claims: 1, tag: 'tag', version: 0 })
    account.touch('1', 4)
    account.touch('2')
    account.touch('unknown', 9)
    expect(account.usage).toMatchObject({ leases: 2, claims: 8 })
    expect(account.leases.get('1')).toMatchObject({ claims: 5, version: 1 })
    expect([...account.stale]).toEqual(['1', '2'])
    account.usage.claims = 100
    account.usage.leases = 100
    account.sum()
    expect(account.usage).toMatchObject({ leases: 2, claims: 8 })
    account.forget('1')
    account.forget('unknown')
    expect(account.usage).toMatchObject({ leases: 1, claims: 3 })
    expect([...account.stale]).toEqual(['2'])
  })

  it('adds pending calls, and removes them when they are answered or fail', async () => {
    const account = new Account('ann')
    account.set('1', 2, undefined)
    const quota = { leases: 3, claims: 5 }
    const excess = (leases: number, claims: number) =>
      account.excess(quota, { leases, claims })?.message
    expect(excess(2, 3)).toBeUndefined()
    expect(excess(3, 0)).toMatch(/at most 3 leases/)
    expect(excess(0, 4)).toMatch(/at most 5 claims/)
    const during = await account.reserve({ leases: 1, claims: 2 }, async () => [
      ...[excess(1, 1), excess(2, 0), excess(0, 2)],
    ])
    expect(during).toEqual([
      ...[undefined, expect.stringMatching('leases'), expect.stringMatching('claims')],
    ])
    const failing = account.reserve({ leases: 1, claims: 1 }, async () => {
      throw new Error('away')
    })
    await expect(failing).rejects.toThrowError('away')
    expect(excess(2, 3)).toBeUndefined()
    // A call that adds nothing is never refused, even above the quota.
    account.set('2', 9, undefined)
    expect(excess(0, 0)).toBeUndefined()
    account.set('3', 0, undefined)
    account.set('4', 0, undefined)
    expect(account.excess({ leases: 1 }, { leases: 0, claims: 1 })).toBeUndefined()
    expect(account.excess({}, { leases: 1000, claims: 1000 })).toBeUndefined()
  })

  it('remembers the leases that wait until they are taken, the latest 100,000', () => {
    const account = new Account('ann')
    account.queued('a')
    account.queued('b')
    account.queued('c')
    account.forget('b')
    expect([...account.takeQueued()]).toEqual(['a', 'c'])
    expect(account.takeQueued().size).toBe(0)
    for (let at = 0; at <= 100_000; at++) account.queued(String(at))
    const queued = account.takeQueued()
    expect([queued.size, queued.has('0'), queued.has('1')]).toEqual([100_000, false, true])
  })

  it('lets 256 leases be looked up in one tick, and the others in the next ones', async () => {
    const clock = new TestClock()
    const account = new Account('ann')
    let done = 0
    const lookUp = (times: number) => {
      for (let at = 0; at < times; at++) {
        const turn = account.lookUp(clock)
        if (turn === undefined) done++
        else void turn.then(() => done++)
      }
    }
    lookUp(256 + 256 + 10)
    await Promise.resolve()
    expect(done).toBe(256)
    const tick = () => new Promise<void>((resolve) => clock.defer(resolve))
    await tick()
    await Promise.resolve()
    expect(done).toBe(512)
    await tick()
    await Promise.resolve()
    expect(done).toBe(522)
    // The ten of this tick count, so fewer are left.
    lookUp(247)
    await Promise.resolve()
    expect(done).toBe(522 + 246)
    await tick()
    await tick()
    expect(done).toBe(522 + 247)
  })
})

describe('the use that a principal makes', () => {
  const NAME = 'ann'

  it('refills at the rate of its calls, up to one second of them', async () => {
    const clock = new TestClock()
    const usage = new Usage()
    const passes = (quota: object, times: number) => {
      let passed = 0
      for (let at = 0; at < times; at++) {
        try {
          usage.call(NAME, quota, clock)
          passed++
        } catch (error) {
          expect(error).toMatchObject({ code: 'limit-exceeded' })
        }
      }
      return passed
    }
    expect(passes({}, 5)).toBe(5)
    expect(passes({ callsPerSecond: 4 }, 10)).toBe(4)
    await clock.advance(500)
    expect(passes({ callsPerSecond: 4 }, 10)).toBe(2)
    await clock.advance(10_000)
    expect(passes({ callsPerSecond: 4 }, 10)).toBe(4)
    expect(usage).toMatchObject({ calls: 35, refused: 20 })
    await clock.advance(10_000)
    expect(passes({ callsPerSecond: 0 }, 3)).toBe(0)
  })

  it('says how long bytes must wait; up to one second of them may arrive together', async () => {
    const clock = new TestClock()
    const usage = new Usage()
    const quota = { bytesPerSecond: 1000 }
    expect(usage.payload({}, clock, 1e9)).toBe(0)
    expect(usage.payload(quota, clock, 1000)).toBe(0)
    expect(usage.payload(quota, clock, 500)).toBe(500)
    await clock.advance(250)
    expect(usage.payload(quota, clock, 0)).toBe(250)
    await clock.advance(250)
    expect(usage.payload(quota, clock, 0)).toBe(0)
    await clock.advance(60_000)
    expect(usage.payload(quota, clock, 3000)).toBe(2000)
  })

  it('of a quota of nothing is nothing, from the first call and byte on', async () => {
    const clock = new TestClock()
    const usage = new Usage()
    const none = { callsPerSecond: 0, bytesPerSecond: 0 }
    expect(() => usage.call(NAME, none, clock)).toThrowError(refused('limit-exceeded'))
    expect([usage.payload(none, clock, 0), usage.payload(none, clock, 1)]).toEqual([0, Infinity])
    // A quota that is raised later counts from then on.
    const some = { callsPerSecond: 2, bytesPerSecond: 100 }
    await clock.advance(1000)
    usage.call(NAME, some, clock)
    usage.call(NAME, some, clock)
    expect(() => usage.call(NAME, some, clock)).toThrowError(refused('limit-exceeded'))
    expect(usage.payload(some, clock, 199)).toBe(1000)
  })

  it('is bounded in ttls and values, with the bounds allowed', () => {
    const code = refused('limit-exceeded')
    const ttls = { ttlMin: 10, ttlMax: 20 }
    for (const ttl of [10, 20]) checkTtl(NAME, ttls, ttl)
    for (const ttl of [9, 21]) expect(() => checkTtl(NAME, ttls, ttl)).toThrowError(code)
    checkTtl(NAME, {}, 5)
    checkValue(NAME, { valueBytes: 2 }, 'ä')
    checkValue(NAME, { valueBytes: 0 }, undefined)
    checkValue(NAME, {}, 'long')
    expect(() => checkValue(NAME, { valueBytes: 2 }, 'ää')).toThrowError(code)
  })
})
