import { describe, expect, it } from 'vitest'
import { Leasehold } from '../../../src/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { FaultyStore } from '../faulty-store.ts'

/** Clocks do not differ here, so that times are exact. */
async function open() {
  const clock = new TestClock()
  const inner = memoryStore({ clock })
  const store = new FaultyStore(inner, clock)
  const leasehold = await Leasehold.open(store, { clock, drift: 0, margin: 0 })
  return { clock, inner, store, leasehold }
}

describe('the holder of a lease that is broken', () => {
  it('knows its last deadline at once, and asks for it again if it renews automatically', async () => {
    const { clock, inner, store, leasehold } = await open()
    const lock = await leasehold.lock('k', { strategy: 'reservation', ttl: '10s' })
    await clock.settle()
    await inner.revoke({ target: { lease: lock.lease }, by: 'ops', after: 3000 })
    await clock.settle()
    expect([lock.remaining(), store.count('renew')]).toEqual([3000, 0])
    const other = await leasehold.lock('other', { ttl: '10s' })
    await clock.settle()
    await inner.revoke({ target: { lease: other.lease }, by: 'ops', after: 3000 })
    await clock.settle()
    // An automatic renewal asks at once, because the notice may be old.
    expect(store.count('renew')).toBe(1)
  })

  it('has lost it at that deadline, although its ttl and grace are longer and the store does not answer', async () => {
    const { clock, inner, store, leasehold } = await open()
    const options = { strategy: 'reservation', ttl: '10s', grace: '10s' } as const
    const lock = await leasehold.lock('k', options)
    await clock.settle()
    await inner.revoke({ target: { lease: lock.lease }, by: 'ops', after: 3000 })
    await clock.settle()
    store.freeze()
    await clock.advance(2999)
    expect(lock.state).toBe('held')
    await clock.advance(1)
    expect(lock.signal.reason).toMatchObject({ code: 'lost', reason: 'broken', by: 'ops' })
  })

  it('is notified once, although the answers to renewals give a slightly earlier time', async () => {
    const { clock, inner, store, leasehold } = await open()
    const broken: unknown[] = []
    leasehold.on('broken', (event) => broken.push(event))
    const lock = await leasehold.lock('k', { ttl: '10s' })
    await clock.settle()
    store.fault = (call) => (call === 'renew' ? { there: 500 } : undefined)
    await inner.revoke({ target: { lease: lock.lease }, by: 'ops', after: 3000 })
    await clock.advance(1000)
    expect(broken).toEqual([{ lease: lock.lease, remaining: 3000, by: 'ops', why: undefined }])
    expect(lock.remaining()).toBe(1500)
  })

  it('is notified even shortly before the end of maxHold', async () => {
    const { clock, inner, leasehold } = await open()
    const broken: unknown[] = []
    leasehold.on('broken', (event) => broken.push(event))
    const lock = await leasehold.lock('k', { ttl: '10s', maxHold: '10s' })
    await clock.settle()
    await inner.revoke({ target: { lease: lock.lease }, by: 'ops', after: 9800 })
    await clock.settle()
    expect(broken).toHaveLength(1)
  })
})
