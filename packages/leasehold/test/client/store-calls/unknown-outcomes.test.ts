import { describe, expect, it } from 'vitest'
import { Leasehold, LeaseholdError } from '../../../src/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { type Fault, FaultyStore } from '../faulty-store.ts'

async function open(inProcess = false) {
  const clock = new TestClock()
  const inner = memoryStore({ clock })
  const store = new FaultyStore(inner, clock, inProcess)
  const leasehold = await Leasehold.open(store, { clock, callTimeout: 500 })
  const claims = async (key: string) => (await inner.read({ key })).count
  const leases = async () => (await inner.read({ leases: true })).leases.length
  return { clock, inner, store, leasehold, claims, leases }
}

/** The first calls of this name have the fault. */
function first(times: number, name: string, fault: Fault) {
  let left = times
  return (call: string) => (call === name && left-- > 0 ? fault : undefined)
}

describe('a claim that was not answered', () => {
  it('is sent again with the same request id, and finds its own claim', async () => {
    const { clock, store, leasehold, claims } = await open()
    await leasehold.lock('other')
    store.fault = first(1, 'claim', { lost: 'reply' })
    const pending = leasehold.lock('k')
    await clock.advance(700)
    expect((await pending).held).toBe(true)
    expect(store.count('claim')).toBe(2)
    expect(new Set(store.requests.slice(1)).size).toBe(1)
    expect(await claims('k')).toBe(1)
  })

  it('fails as unknown in the end, and is undone when the store answers again', async () => {
    const { clock, store, leasehold, claims } = await open()
    const other = await leasehold.lock('other', { ttl: '1m' })
    store.fault = (call) => (call === 'claim' ? { lost: 'reply' } : undefined)
    const failed = leasehold.lock('k', { ttl: '1m' }).catch((error) => error)
    await clock.advance(3000)
    expect(await failed).toMatchObject({ code: 'unknown-outcome' })
    expect(await claims('k')).toBe(1)
    store.fault = () => undefined
    await clock.advance(5000)
    expect(await claims('k')).toBe(0)
    expect(other.held).toBe(true)
  })

  it('is undone if it was aborted before the answer', async () => {
    const { clock, store, leasehold, claims } = await open()
    await leasehold.lock('other')
    store.fault = first(1, 'claim', { back: 200 })
    const controller = new AbortController()
    const failed = leasehold.lock('k', { signal: controller.signal }).catch((error) => error)
    await clock.advance(100)
    controller.abort()
    expect(await failed).toMatchObject({ code: 'aborted' })
    expect(await claims('k')).toBe(1)
    await clock.advance(200)
    expect(await claims('k')).toBe(0)
  })

  it('is undone if its wait ran out before the answer', async () => {
    const { clock, store, leasehold, claims } = await open()
    await leasehold.lock('other')
    store.fault = first(1, 'claim', { back: 200 })
    const failed = leasehold.lock('k', { wait: 100 }).catch((error) => error)
    await clock.advance(110)
    expect(await failed).toMatchObject({ code: 'timeout' })
    await clock.advance(200)
    expect(await claims('k')).toBe(0)
  })

  it('is found in the reported standing and undone, if it cannot be sent again', async () => {
    const { clock, inner, store, leasehold, claims } = await open(true)
    await leasehold.lock('other')
    // As a disk does that fails after the change was made: done, but not known to be.
    const claim = store.claim.bind(store)
    store.claim = async (request) => {
      await inner.claim(request)
      throw new LeaseholdError('storage-failed', 'the disk failed')
    }
    await expect(leasehold.lock('k')).rejects.toMatchObject({ code: 'storage-failed' })
    store.claim = claim
    await clock.settle()
    expect(await claims('k')).toBe(0)
    expect(await claims('other')).toBe(1)
  })

  it('does not have the claims of others undone that are on their way', async () => {
    const { clock, store, leasehold, claims } = await open()
    await leasehold.lock('other')
    store.fault = first(1, 'claim', { back: 300 })
    const pending = leasehold.lock('k')
    await clock.advance(100)
    // The watch is opened again and reports a claim that is still unknown here.
    store.interrupt()
    await clock.advance(100)
    expect(await claims('k')).toBe(1)
    await clock.advance(200)
    expect((await pending).held).toBe(true)
    await clock.advance(1000)
    expect(await claims('k')).toBe(1)
  })
})

describe('claims that overlap', () => {
  it('are each awaited before the reported standing is compared with them', async () => {
    const { clock, store, leasehold, claims } = await open()
    await leasehold.lock('other')
    const delays = [200, 400]
    store.fault = (call) => (call === 'claim' ? { back: delays.shift()! } : undefined)
    const a = leasehold.lock('a')
    await clock.advance(50)
    store.interrupt()
    await clock.advance(60)
    const b = leasehold.lock('b')
    await clock.advance(10)
    // Both are unknown to the watch now; the first is answered long before the second.
    store.interrupt()
    await clock.advance(1000)
    expect([(await a).held, (await b).held]).toEqual([true, true])
    expect([await claims('a'), await claims('b')]).toEqual([1, 1])
  })
})

describe('a grant that was not answered', () => {
  it('fails as unknown in the end, and leaves no lease behind', async () => {
    const { clock, store, leasehold, leases } = await open()
    store.fault = first(3, 'grant', { lost: 'reply' })
    const failed = [leasehold.lock('a'), leasehold.lock('b')].map((it) =>
      it.catch((error) => error),
    )
    await clock.advance(2000)
    for (const error of await Promise.all(failed)) {
      expect(error).toMatchObject({ code: 'unknown-outcome' })
    }
    await clock.advance(2000)
    expect(await leases()).toBe(0)
    expect((await leasehold.lock('a')).held).toBe(true)
  })

  it('that is answered too late to rely on is released, and another is requested', async () => {
    const { clock, store, leasehold, leases } = await open(true)
    store.fault = first(1, 'grant', { back: 1200 })
    const pending = leasehold.lock('k', { ttl: '1s' })
    await clock.advance(1500)
    expect((await pending).held).toBe(true)
    expect(store.count('grant')).toBe(2)
    expect(await leases()).toBe(1)
  })
})

describe('a release that was not answered', () => {
  it('is sent again until the claim is gone', async () => {
    const { clock, store, leasehold, claims } = await open()
    await leasehold.lock('other', { ttl: '1m' })
    const lock = await leasehold.lock('k', { ttl: '1m' })
    store.fault = (call) => (call === 'release' ? { lost: 'request' } : undefined)
    const failed = lock.release().catch((error) => error)
    await clock.advance(3000)
    expect(await failed).toMatchObject({ code: 'unknown-outcome' })
    expect(await claims('k')).toBe(1)
    store.fault = () => undefined
    await clock.advance(5000)
    expect(await claims('k')).toBe(0)
  })

  it('is done when only its reply was lost', async () => {
    const { clock, store, leasehold, claims } = await open()
    const lock = await leasehold.lock('k')
    store.fault = first(1, 'release', { lost: 'reply' })
    const released = lock.release()
    await clock.advance(1000)
    await released
    expect(await claims('k')).toBe(0)
  })

  it('is repeated while the store refuses because it is full', async () => {
    const { clock, store, leasehold, claims } = await open(true)
    await leasehold.lock('other')
    const lock = await leasehold.lock('k')
    store.fault = first(2, 'release', { error: new LeaseholdError('storage-full', 'no space') })
    const released = lock.release()
    await clock.advance(1000)
    await released
    expect(await claims('k')).toBe(0)
  })
})

describe('a renewal that was not answered', () => {
  it('is sent again within the time that is left, and never after', async () => {
    const { clock, store, leasehold } = await open()
    const lock = await leasehold.lock('k', { ttl: '10s' })
    store.fault = (call) => (call === 'renew' ? { lost: 'request' } : undefined)
    await clock.advance(9000)
    expect(store.count('renew')).toBeGreaterThan(3)
    expect(lock.held).toBe(true)
    store.fault = () => undefined
    await clock.advance(800)
    expect(lock.held).toBe(true)
    expect(lock.remaining()).toBeGreaterThan(8000)
    store.fault = (call) => (call === 'renew' ? { lost: 'request' } : undefined)
    await clock.advance(10_000)
    const sent = store.count('renew')
    expect(lock.state).toBe('lost')
    await clock.advance(60_000)
    expect(store.count('renew')).toBe(sent)
    expect(sent).toBeLessThan(100)
  })
})
