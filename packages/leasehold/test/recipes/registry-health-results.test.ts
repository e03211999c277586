import { describe, expect, it } from 'vitest'
import { Client } from '../../src/client/index.ts'
import { type ErrorCode, LeaseholdError } from '../../src/index.ts'
import { HealthResults } from '../../src/recipes/registry/checker/health-results.ts'
import { testStore } from '../../src/testing/index.ts'
import { FaultyStore } from '../client/faulty-store.ts'

const MINUTE = 60_000

/** What a checker writes with, over a line that can be disturbed. */
async function writing() {
  const { store, clock } = testStore()
  const line = new FaultyStore(store, clock)
  const client = new Client(line, { clock, callTimeout: '1s' })
  let isOnDuty = true
  let questions = 0
  let asked = 0
  const results = new HealthResults(client, () => {
    asked++
    // Whoever asks again and again without end is let through, and is seen to have written.
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
  return { store, clock, line, results, texts, leases, dismiss, asked: () => asked }
}

describe('what a checker writes', () => {
  it('is there under one lease of 30 s, for as long as it goes on', async () => {
    const { clock, line, results, texts, leases } = await writing()
    results.set('a', '1')
    results.set('b', '1')
    await clock.advance(0)
    results.set('a', '2')
    results.set('b', '1')
    await clock.advance(5 * MINUTE)
    expect(await texts()).toEqual({ a: '2', b: '1' })
    expect(await leases()).toMatchObject([{ ttl: 30_000 }])
    expect([line.count('claim'), line.count('update')]).toEqual([2, 1])
    expect(line.count('renew')).toBe(30)
    results.drop('b')
    results.drop('never')
    await clock.advance(0)
    expect(await texts()).toEqual({ a: '2' })
    expect(line.count('release')).toBe(1)
    // What was found stands for a while after it has stopped.
    results.stop()
    results.set('c', '1')
    await clock.advance(19_000)
    expect(await texts()).toEqual({ a: '2' })
    await clock.advance(20_000)
    expect(await texts()).toEqual({})
    expect(line.count('renew')).toBe(30)
  })

  it('is the latest, in order, however slow the store is', async () => {
    const { clock, line, results, texts } = await writing()
    line.fault = () => ({ there: 100 })
    results.set('a', '1')
    await clock.advance(50)
    results.set('a', '2')
    results.set('a', '3')
    await clock.advance(1000)
    expect(await texts()).toEqual({ a: '3' })
    expect(line.count('update')).toBe(1)
    results.set('a', '4')
    results.drop('a')
    await clock.advance(1000)
    expect(await texts()).toEqual({})
  })

  it('is written sixteen keys at a time', async () => {
    const { clock, line, results, texts } = await writing()
    results.set('first', '1')
    await clock.advance(0)
    line.fault = () => ({ there: 100 })
    const claims = () => line.count('claim') - 1
    for (let at = 0; at < 40; at++) results.set(`k${at}`, '1')
    expect(claims()).toBeLessThanOrEqual(16)
    await clock.advance(50)
    expect(claims()).toBe(16)
    await clock.advance(100)
    expect(claims()).toBe(32)
    await clock.advance(1000)
    expect(Object.keys(await texts())).toHaveLength(41)
  })

  it('is tried again after a second if it failed', async () => {
    const { clock, line, results, texts } = await writing()
    line.fault = () => ({ error: new LeaseholdError('forbidden', 'no') })
    results.set('a', '1')
    results.set('b', '1')
    await clock.advance(2500)
    // Both share the lease that could not be had.
    expect(line.count('grant')).toBe(3)
    line.fault = () => undefined
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
    // The next change finds out before the renewal does.
    results.set('a', '2')
    await clock.advance(1000)
    expect(await texts()).toEqual({ a: '2', b: '1' })
  })

  it('is not written by one that is not on duty any more', async () => {
    const { clock, line, results, dismiss, texts } = await writing()
    dismiss()
    results.set('a', '1')
    await clock.advance(5000)
    expect([await texts(), line.count('grant'), line.count('claim')]).toEqual([{}, 0, 0])
    results.stop()
    await clock.advance(5000)
    expect(line.count('grant')).toBe(0)
  })

  it('gets another lease if the first one is full', async () => {
    const { clock, line, results, texts, leases } = await writing()
    results.set('a', '1')
    await clock.advance(0)
    let refusals = 0
    line.fault = (call) =>
      call === 'claim' && refusals++ === 0
        ? { error: new LeaseholdError('limit-exceeded', 'full') }
        : undefined
    results.set('b', '1')
    await clock.advance(1000)
    expect(await texts()).toEqual({ a: '1', b: '1' })
    expect(await leases()).toHaveLength(2)
  })

  it('is what it was before, if that is wanted again while something else is written', async () => {
    const { clock, line, results, texts } = await writing()
    results.set('a', '1')
    await clock.advance(0)
    line.fault = () => ({ there: 100 })
    results.set('a', '2')
    await clock.advance(50)
    results.set('a', '1')
    await clock.advance(1000)
    expect(await texts()).toEqual({ a: '1' })
  })

  it('is the latest, though an older one could not be written', async () => {
    const { clock, line, results, texts } = await writing()
    let grants = 0
    line.fault = (call) =>
      call === 'grant' && grants++ === 0
        ? { error: new LeaseholdError('forbidden', 'no') }
        : undefined
    line.freeze()
    results.set('a', '1')
    await clock.advance(0)
    results.set('a', '2')
    line.thaw()
    await clock.advance(1000)
    expect(await texts()).toEqual({ a: '2' })
    expect(line.count('update')).toBe(0)
  })

  it('is the latest, though its lease was lost while something else was written', async () => {
    const { store, clock, line, results, texts } = await writing()
    results.set('a', '1')
    await clock.advance(9800)
    const { claims } = await store.read({ key: 'a' })
    await store.revoke({ target: { lease: claims[0]!.lease } })
    line.fault = (call) => (call === 'update' ? { there: 500 } : undefined)
    results.set('a', '2')
    await clock.advance(100)
    results.set('a', '3')
    // The renewal finds that the lease is gone before the update does.
    await clock.advance(5000)
    expect(await texts()).toEqual({ a: '3' })
  })

  it('is removed once: what is not there is not looked for again and again', async () => {
    const { clock, results, asked } = await writing()
    results.drop('never')
    await clock.advance(5000)
    expect(asked()).toBe(1)
  })

  it.each(['lease-ended', 'lease-not-found'] as const)(
    'is all written again if the store answers %s',
    async (code) => {
      const { clock, line, results, texts, leases } = await writing()
      results.set('a', '1')
      results.set('b', '1')
      await clock.advance(0)
      let updates = 0
      line.fault = (call) =>
        call === 'update' && updates++ === 0
          ? { error: new LeaseholdError(code, 'gone') }
          : undefined
      results.set('a', '2')
      await clock.advance(1000)
      expect(await texts()).toEqual({ a: '2', b: '1' })
      expect([(await leases()).length, line.count('claim')]).toEqual([2, 4])
    },
  )

  it('is not renewed any more when it stops in the middle of a renewal', async () => {
    const { clock, line, results } = await writing()
    results.set('a', '1')
    line.fault = (call) => (call === 'renew' ? { there: 500 } : undefined)
    await clock.advance(10_200)
    results.stop()
    await clock.advance(MINUTE)
    expect(line.count('renew')).toBe(1)
  })
})

describe('the lease of what a checker writes', () => {
  /** One key is written, and these calls are refused with this code so many times. */
  async function refused(call: 'claim' | 'update', code: ErrorCode, times: number) {
    const all = await writing()
    all.results.set('a', '1')
    all.results.set('b', '1')
    await all.clock.advance(0)
    let calls = 0
    all.line.fault = (name) =>
      name === call && calls++ < times ? { error: new LeaseholdError(code, 'no') } : undefined
    return all
  }

  it('is full if a claim passes a limit; one without a claim is not full', async () => {
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

  it('is not full if an update passes a limit', async () => {
    const { clock, results, leases } = await refused('update', 'limit-exceeded', 1)
    results.set('a', '2')
    await clock.advance(5000)
    results.set('c', '1')
    await clock.advance(5000)
    expect(await leases()).toHaveLength(1)
  })

  it('takes with it what was written under it, and nothing else', async () => {
    const { store, clock, line, results, texts } = await refused('claim', 'limit-exceeded', 1)
    results.set('c', '1')
    await clock.advance(1000)
    const claims = line.count('claim')
    const { claims: onC } = await store.read({ key: 'c' })
    await store.revoke({ target: { lease: onC[0]!.lease } })
    await clock.advance(10_000)
    expect(await texts()).toEqual({ a: '1', b: '1', c: '1' })
    expect(line.count('claim')).toBe(claims + 1)
  })
})
