import { describe, expect, it } from 'vitest'
import { Leasehold, type LeaseholdError } from '../../../src/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { CountingClock } from '../counting-clock.ts'
import { FaultyStore } from '../faulty-store.ts'

/** The test clock counts the timers that keep the process running; a real one would not end. */
async function open(inProcess = false) {
  const clock = new CountingClock()
  const inner = memoryStore({ clock })
  const store = new FaultyStore(inner, clock, inProcess)
  const leasehold = await Leasehold.open(store, { clock, holder: 'me', callTimeout: 1000 })
  const rival = await Leasehold.open(inner, { clock, holder: 'rival' })
  return { clock, inner, store, leasehold, rival }
}

const caught = (promise: Promise<unknown>): Promise<LeaseholdError> =>
  promise.then(
    () => {
      throw new Error('it did not fail')
    },
    (error) => error,
  )

describe.each([true, false])('the process (a store in it: %s)', (inProcess) => {
  it('is not kept running by a hold', async () => {
    const { clock, leasehold } = await open(inProcess)
    const lock = await leasehold.lock('k')
    await leasehold.lock('l', { maxHold: '1h' })
    await clock.advance(60_000)
    expect(lock.held).toBe(true)
    expect(clock.keeping).toBe(0)
  })

  it('is kept running by a wait for a lock, and not after it is held', async () => {
    const { clock, leasehold, rival } = await open(inProcess)
    const first = await rival.lock('k')
    const waits = [leasehold.lock('k'), leasehold.lock('k', { maxHold: '1h' })]
    await clock.advance(10_000)
    expect(clock.keeping).toBe(1)
    await first.release()
    const second = await waits[0]!
    expect(clock.keeping).toBe(1)
    await second.release()
    await waits[1]
    expect(clock.keeping).toBe(0)
  })

  it('is not kept running after a wait has failed', async () => {
    const { clock, leasehold, rival } = await open(inProcess)
    await rival.lock('k')
    const controller = new AbortController()
    const aborted = caught(leasehold.lock('k', { signal: controller.signal }))
    const late = caught(leasehold.lock('k', { wait: '5s' }))
    await clock.advance(1000)
    controller.abort()
    expect(await aborted).toMatchObject({ code: 'aborted' })
    expect(clock.keeping).toBe(1)
    await clock.advance(5000)
    expect(await late).toMatchObject({ code: 'timeout' })
    expect(clock.keeping).toBe(0)
  })

  it('is not kept running after the client is closed', async () => {
    const { clock, leasehold, rival } = await open(inProcess)
    await rival.lock('k')
    const wait = caught(leasehold.lock('k'))
    await clock.settle()
    await leasehold.close()
    expect(await wait).toMatchObject({ code: 'closed' })
    expect(clock.keeping).toBe(0)
  })
})

describe('a store that answers slowly or not at all', () => {
  it.each([
    ['finds its key taken', 'taken'],
    ['is refused', ''],
  ])('keeps the process running for the next wait after an aborted try %s', async (_, key) => {
    const { clock, store, leasehold, rival } = await open()
    await rival.lock('taken')
    store.fault = (call) => (call === 'grant' ? { back: 500 } : undefined)
    const controller = new AbortController()
    const aborted = caught(leasehold.tryLock(key, { signal: controller.signal }))
    await clock.settle()
    controller.abort()
    expect(await aborted).toMatchObject({ code: 'aborted' })
    await clock.advance(1000)
    store.fault = () => undefined
    void leasehold.lock('taken')
    await clock.advance(100)
    expect(clock.keeping).toBe(1)
  })

  it('keeps the process running during a request for a lease', async () => {
    const { clock, store, leasehold } = await open()
    store.fault = (call) => (call === 'grant' ? { back: 500 } : undefined)
    const locks = [leasehold.lock('a'), leasehold.lock('b')]
    await clock.advance(100)
    expect(clock.keeping).toBe(1)
    await clock.advance(1000)
    await Promise.all(locks)
    expect(clock.keeping).toBe(0)
  })

  it('keeps the process running until the caller knows that the outcome is unknown', async () => {
    const { clock, store, leasehold } = await open()
    const lock = await leasehold.lock('other')
    for (const [call, ask] of [
      ['claim', () => leasehold.lock('k')],
      ['update', () => lock.update('x')],
    ] as const) {
      store.fault = (name) => (name === call ? { error: new Error('broken') } : undefined)
      const before = store.count(call)
      const failed = caught(ask())
      await clock.settle()
      expect(clock.keeping).toBe(1)
      await clock.advance(1000)
      expect(await failed).toMatchObject({ code: 'unknown-outcome' })
      expect(store.count(call) - before).toBeGreaterThanOrEqual(3)
      expect(clock.keeping).toBe(0)
    }
  })

  it('keeps the process running while a release is sent again, until its caller knows', async () => {
    const { clock, store, leasehold } = await open()
    await leasehold.lock('other', { ttl: '1h' })
    const lock = await leasehold.lock('k', { ttl: '1h' })
    store.fault = (call) => (call === 'release' ? { error: new Error('broken') } : undefined)
    const released = caught(lock.release())
    await clock.settle()
    expect(clock.keeping).toBe(1)
    await clock.advance(300)
    expect(await released).toMatchObject({ code: 'unknown-outcome' })
    expect(clock.keeping).toBe(0)
    await clock.advance(600_000)
    expect(clock.keeping).toBe(0)
  })

  it('keeps the process running while a renewal is waited for', async () => {
    const { clock, store, leasehold } = await open()
    const lock = await leasehold.lock('k', { ttl: '1h' })
    store.fault = (call) => (call === 'renew' ? { back: 500 } : undefined)
    const renewed = lock.renew()
    await clock.advance(100)
    expect(clock.keeping).toBe(1)
    await clock.advance(500)
    await renewed
    expect(clock.keeping).toBe(0)
    store.fault = (call) => (call === 'renew' ? { lost: 'request' } : undefined)
    const failed = caught(lock.renew({ timeout: 1000 }))
    await clock.advance(999)
    expect(clock.keeping).toBe(1)
    await clock.advance(1)
    expect(await failed).toMatchObject({ code: 'unknown-outcome' })
    expect(clock.keeping).toBe(0)
  })

  it('keeps the process running for the next wait after a renewal was not answered', async () => {
    const { clock, store, leasehold, rival } = await open()
    const lock = await leasehold.lock('k', { ttl: '1h' })
    store.fault = (call) => (call === 'renew' ? { back: 2000 } : undefined)
    const failed = caught(lock.renew({ timeout: 1000 }))
    await clock.advance(1000)
    expect(await failed).toMatchObject({ code: 'unknown-outcome' })
    // The answer arrives when nobody waits for it any more.
    await clock.advance(2000)
    expect(clock.keeping).toBe(0)
    await rival.lock('taken')
    void leasehold.lock('taken')
    await clock.advance(100)
    expect(clock.keeping).toBe(1)
  })

  it('keeps the process running for the next wait after an update was given up', async () => {
    const { clock, store, leasehold, rival } = await open()
    const lock = await leasehold.lock('k', { ttl: '1h' })
    store.fault = (call) => (call === 'update' ? { error: new Error('broken') } : undefined)
    const failed = caught(lock.update('x'))
    await clock.advance(10_000)
    expect(await failed).toMatchObject({ code: 'unknown-outcome' })
    await rival.lock('taken')
    void leasehold.lock('taken')
    await clock.advance(100)
    expect(clock.keeping).toBe(1)
  })

  it('keeps the process running while the client closes, for as long as a call may take', async () => {
    const { clock, store, leasehold } = await open()
    await leasehold.lock('k')
    store.freeze()
    let closed = false
    leasehold.close().then(() => {
      closed = true
    })
    await clock.advance(999)
    expect([closed, clock.keeping]).toEqual([false, 1])
    await clock.advance(1)
    expect([closed, clock.keeping]).toEqual([true, 0])
  })
})
