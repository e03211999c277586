import { afterEach, describe, expect, it, vi } from 'vitest'
import type { Granted } from '../../src/port/index.ts'
import { TestClock, testStore } from '../../src/testing/index.ts'

afterEach(() => {
  vi.useRealTimers()
})

describe('testStore', () => {
  it('expires a lease when the test has moved the clock, and not before', async () => {
    const { store, clock } = testStore()
    const hour = 3_600_000
    const { lease } = (await store.grant({ holder: 'a', ttl: hour })) as Granted
    await clock.advance(hour - 1)
    expect((await store.read({ lease })).lease).toBeDefined()
    await clock.advance(1)
    expect((await store.read({ lease })).end).toEqual({ reason: 'expired' })
  })

  it('hands the key to the next waiter at the moment of expiry', async () => {
    const { store, clock } = testStore({ start: 5000 })
    const claims = [{ key: 'k' }]
    await store.grant({ holder: 'a', ttl: 100, claims })
    await store.grant({ holder: 'b', ttl: 1000, claims })
    await clock.advance(500)
    const { claims: line } = await store.read({ key: 'k' })
    expect(line).toMatchObject([{ holder: 'b', claimedAt: 5000, heldSince: 5100 }])
  })

  it('accepts the limits of a memory store', async () => {
    const { store } = testStore({ limits: { ttlMin: 5000 }, tokensAbove: 70 })
    await expect(store.grant({ holder: 'a', ttl: 10 })).rejects.toMatchObject({
      code: 'invalid-argument',
      message: 'ttl is 10ms; the minimum is 5s. Use a longer ttl.',
    })
    expect(await store.grant({ holder: 'a', ttl: 5000 })).toMatchObject({ revision: 71 })
  })
})

describe('a store on a test clock, beside fake timers', () => {
  it('moves with its own clock and not with the fake one', async () => {
    vi.useFakeTimers()
    const { store, clock } = testStore()
    const { lease } = (await store.grant({ holder: 'a', ttl: 1000 })) as Granted
    await vi.advanceTimersByTimeAsync(60_000)
    expect((await store.read({ lease })).lease).toBeDefined()
    await clock.advance(1000)
    expect((await store.read({ lease })).lease).toBeUndefined()
  })

  it('works if everything was faked before it was loaded', async () => {
    vi.resetModules()
    vi.useFakeTimers({ toFake: ['setImmediate', 'setTimeout', 'queueMicrotask', 'Date'] })
    const testing = await import('../../src/testing/index.ts')
    const { store, clock } = testing.testStore()
    const { lease } = (await store.grant({ holder: 'a', ttl: 1000 })) as Granted
    await clock.advance(1000)
    expect((await store.read({ lease })).end).toEqual({ reason: 'expired' })
  })

  it('notifies its watches while time stands still', async () => {
    vi.useFakeTimers()
    const { store, clock } = testStore()
    const { lease } = (await store.grant({ holder: 'a', ttl: 1000 })) as Granted
    const heard: string[] = []
    store.watch({ lease }, ({ type }) => heard.push(type))
    await store.revoke({ target: { lease } })
    await clock.settle()
    expect(heard).toEqual(['standing', 'gone'])
  })
})

describe('TestClock', () => {
  it('calls timers in order, each at its own time', async () => {
    const clock = new TestClock(100)
    const calls: [string, number][] = []
    clock.timer(130, () => calls.push(['late', clock.now()]))
    clock.timer(110, () => {
      calls.push(['early', clock.now()])
      clock.timer(120, () => calls.push(['set meanwhile', clock.now()]))
    })
    clock.timer(110, () => calls.push(['second', clock.now()]))
    clock.timer(125, () => calls.push(['cancelled', clock.now()])).cancel()
    await clock.advance(30)
    expect(calls).toEqual([
      ['early', 110],
      ['second', 110],
      ['set meanwhile', 120],
      ['late', 130],
    ])
    expect(clock.now()).toBe(130)
  })

  it('simulates a stall: what was due happens late, with the next move', async () => {
    const clock = new TestClock(100)
    const calls: number[] = []
    clock.timer(110, () => calls.push(clock.now()))
    clock.stall(50)
    expect(calls).toEqual([])
    await clock.advance(0)
    expect(calls).toEqual([150])
  })

  it('sleeps without its time advancing', () => {
    const clock = new TestClock(100)
    clock.sleep(5000)
    expect([clock.now(), clock.asleep()]).toEqual([100, 5000])
  })
})
