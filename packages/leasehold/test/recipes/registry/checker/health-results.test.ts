import { describe, expect, it } from 'vitest'
import { Client } from '../../../../src/client/index.ts'
import { type ErrorCode, LeaseholdError } from '../../../../src/index.ts'
import { HealthResults } from '../../../../src/recipes/registry/checker/health-results.ts'
import { testStore } from '../../../../src/testing/index.ts'
import { FaultyStore } from '../../../client/faulty-store.ts'

const MINUTE = 60_000

/** Health results over a faulty link. */
async function writing() {
  const { store, clock } = testStore()
  const link = new FaultyStore(store, clock)
  const client = new Client(link, { clock, callTimeout: '1s' })
  let isOnDuty = true
  let questions = 0
  let asked = 0
  const results = new HealthResults(client, () => {
    asked++
    // A check that is called endlessly passes in the end, so that the write becomes visible.
    if (!isOnDuty && ++questions < 1000) throw new LeaseholdError('lost', 'off duty')
  })
  const texts = async () => {
    const { keys } = await store.read({ prefix: '' })
    return Object.fromEntries(keys.map(({ key, claims }) => [key, claims.at(-1)?.value]))
  }
  const leases = async () => (await store.read({ leases: true, limit: 100 })).leases
  const dismiss = () => {
    isOnDuty = false
  }
  return { store, clock, link, results, texts, leases, dismiss, asked: () => asked }
}

describe('a health result', () => {
  it('is kept under one lease of 30 s while the checker runs', async () => {
    const { clock, link, results, texts, leases } = await writing()
    results.set('a', '1')
    results.set('b', '1')
    await clock.advance(0)
    results.set('a', '2')
    results.set('b', '1')
    await clock.advance(5 * MINUTE)
    expect(await texts()).toEqual({ a: '2', b: '1' })
    expect(await leases()).toMatchObject([{ ttl: 30_000 }])
    expect([link.count('claim'), link.count('update')]).toEqual([2, 1])
    expect(link.count('renew')).toBe(30)
    results.drop('b')
    results.drop('never')
    await clock.advance(0)
    expect(await texts()).toEqual({ a: '2' })
    expect(link.count('release')).toBe(1)
    // Results stay for a while after the stop.
    results.stop()
    results.set('c', '1')
    await clock.advance(19_000)
    expect(await texts()).toEqual({ a: '2' })
    await clock.advance(20_000)
    expect(await texts()).toEqual({})
    expect(link.count('renew')).toBe(30)
  })

  it('is the latest, however slow the store is', async () => {
    const { clock, link, results, texts } = await writing()
    link.fault = () => ({ there: 100 })
    results.set('a', '1')
    await clock.advance(50)
    results.set('a', '2')
    results.set('a', '3')
    await clock.advance(1000)
    expect(await texts()).toEqual({ a: '3' })
    expect(link.count('update')).toBe(1)
    results.set('a', '4')
    results.drop('a')
    await clock.advance(1000)
    expect(await texts()).toEqual({})
  })

  it('is written sixteen keys at a time', async () => {
    const { clock, link, results, texts } = await writing()
    results.set('first', '1')
    await clock.advance(0)
    link.fault = () => ({ there: 100 })
    const claims = () => link.count('claim') - 1
    for (let at = 0; at < 40; at++) results.set(`k${at}`, '1')
    expect(claims()).toBeLessThanOrEqual(16)
    await clock.advance(50)
    expect(claims()).toBe(16)
    await clock.advance(100)
    expect(claims()).toBe(32)
    await clock.advance(1000)
    expect(Object.keys(await texts())).toHaveLength(41)
  })

  it('is retried after a second if the write failed', async () => {
    const { clock, link, results, texts } = await writing()
    link.fault = () => ({ error: new LeaseholdError('forbidden', 'no') })
    results.set('a', '1')
    results.set('b', '1')
    await clock.advance(2500)
    // Both share the lease that could not be granted.
    expect(link.count('grant')).toBe(3)
    link.fault = () => undefined
    await clock.advance(499)
    expect(await texts()).toEqual({})
    await clock.advance(1)
    expect(await texts()).toEqual({ a: '1', b: '1' })
  })

  it('is written again if its lease was lost', async () => {
    const { store, clock, results, texts, leases } = await writing()
    results.set('a', '1')
    results.set('b', '1')
    await clock.advance(0)
    const [lease] = await leases()
    await store.revoke({ target: { lease: lease!.id } })
    expect(await texts()).toEqual({})
    await clock.advance(10_000)
    expect(await texts()).toEqual({ a: '1', b: '1' })
    const [second] = await leases()
    await store.revoke({ target: { lease: second!.id } })
    // The next change notices before the renewal does.
    results.set('a', '2')
    await clock.advance(1000)
    expect(await texts()).toEqual({ a: '2', b: '1' })
  })

  it('is not written by a checker that is no longer active', async () => {
    const { clock, link, results, dismiss, texts } = await writing()
    dismiss()
    results.set('a', '1')
    await clock.advance(5000)
    expect([await texts(), link.count('grant'), link.count('claim')]).toEqual([{}, 0, 0])
    results.stop()
    await clock.advance(5000)
    expect(link.count('grant')).toBe(0)
  })

  it('gets another lease if the first one is full', async () => {
    const { clock, link, results, texts, leases } = await writing()
    results.set('a', '1')
    await clock.advance(0)
    let refusals = 0
    link.fault = (call) =>
      call === 'claim' && refusals++ === 0
        ? { error: new LeaseholdError('limit-exceeded', 'full') }
        : undefined
    results.set('b', '1')
    await clock.advance(1000)
    expect(await texts()).toEqual({ a: '1', b: '1' })
    expect(await leases()).toHaveLength(2)
  })

  it('can return to its old value during a write', async () => {
    const { clock, link, results, texts } = await writing()
    results.set('a', '1')
    await clock.advance(0)
    link.fault = () => ({ there: 100 })
    results.set('a', '2')
    await clock.advance(50)
    results.set('a', '1')
    await clock.advance(1000)
    expect(await texts()).toEqual({ a: '1' })
  })

  it('is the latest, although an older write failed', async () => {
    const { clock, link, results, texts } = await writing()
    let grants = 0
    link.fault = (call) =>
      call === 'grant' && grants++ === 0
        ? { error: new LeaseholdError('forbidden', 'no') }
        : undefined
    link.freeze()
    results.set('a', '1')
    await clock.advance(0)
    results.set('a', '2')
    link.thaw()
    await clock.advance(1000)
    expect(await texts()).toEqual({ a: '2' })
    expect(link.count('update')).toBe(0)
  })

  it('is the latest, although its lease was lost during a write', async () => {
    const { store, clock, link, results, texts } = await writing()
    results.set('a', '1')
    await clock.advance(9800)
    const { claims } = await store.read({ key: 'a' })
    await store.revoke({ target: { lease: claims[0]!.lease } })
    link.fault = (call) => (call === 'update' ? { there: 500 } : undefined)
    results.set('a', '2')
    await clock.advance(100)
    results.set('a', '3')
    // The renewal notices the lost lease before the update does.
    await clock.advance(5000)
    expect(await texts()).toEqual({ a: '3' })
  })

  it('is removed once: a missing claim is not removed repeatedly', async () => {
    const { clock, results, asked } = await writing()
    results.drop('never')
    await clock.advance(5000)
    expect(asked()).toBe(1)
  })

  it.each(['lease-ended', 'lease-not-found'] as const)(
    'is written again if the store answers %s',
    async (code) => {
      const { clock, link, results, texts, leases } = await writing()
      results.set('a', '1')
      results.set('b', '1')
      await clock.advance(0)
      let updates = 0
      link.fault = (call) =>
        call === 'update' && updates++ === 0
          ? { error: new LeaseholdError(code, 'gone') }
          : undefined
      results.set('a', '2')
      await clock.advance(1000)
      expect(await texts()).toEqual({ a: '2', b: '1' })
      expect([(await leases()).length, link.count('claim')]).toEqual([2, 4])
    },
  )

  it('is not renewed any more after a stop during a renewal', async () => {
    const { clock, link, results } = await writing()
    results.set('a', '1')
    link.fault = (call) => (call === 'renew' ? { there: 500 } : undefined)
    await clock.advance(10_200)
    results.stop()
    await clock.advance(MINUTE)
    expect(link.count('renew')).toBe(1)
  })
})

describe('the lease of health results', () => {
  /** Writes one key while these calls fail with this code this many times. */
  async function refused(call: 'claim' | 'update', code: ErrorCode, times: number) {
    const all = await writing()
    all.results.set('a', '1')
    all.results.set('b', '1')
    await all.clock.advance(0)
    let calls = 0
    all.link.fault = (name) =>
      name === call && calls++ < times ? { error: new LeaseholdError(code, 'no') } : undefined
    return all
  }

  it('is full if a claim exceeds a limit; one without a claim is not full', async () => {
    const { clock, results, texts, leases } = await refused('claim', 'limit-exceeded', 3)
    results.set('c', '1')
    await clock.advance(5000)
    expect(await texts()).toEqual({ a: '1', b: '1', c: '1' })
    expect(await leases()).toHaveLength(2)
  })

  it('is not full if a claim is refused for another reason', async () => {
    const { clock, results, texts, leases } = await refused('claim', 'forbidden', 1)
    results.set('c', '1')
    await clock.advance(5000)
    expect(await texts()).toEqual({ a: '1', b: '1', c: '1' })
    expect(await leases()).toHaveLength(1)
  })

  it('is not full if an update exceeds a limit', async () => {
    const { clock, results, leases } = await refused('update', 'limit-exceeded', 1)
    results.set('a', '2')
    await clock.advance(5000)
    results.set('c', '1')
    await clock.advance(5000)
    expect(await leases()).toHaveLength(1)
  })

  it('ends with the results under it, and nothing else', async () => {
    const { store, clock, link, results, texts } = await refused('claim', 'limit-exceeded', 1)
    results.set('c', '1')
    await clock.advance(1000)
    const claims = link.count('claim')
    const { claims: onC } = await store.read({ key: 'c' })
    await store.revoke({ target: { lease: onC[0]!.lease } })
    await clock.advance(10_000)
    expect(await texts()).toEqual({ a: '1', b: '1', c: '1' })
    expect(link.count('claim')).toBe(claims + 1)
  })
})
