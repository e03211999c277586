import { describe, expect, it } from 'vitest'
import { Leasehold } from '../../../src/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { FaultyStore } from '../faulty-store.ts'

async function open(options = {}) {
  const clock = new TestClock()
  const inner = memoryStore({ clock })
  const store = new FaultyStore(inner, clock)
  const leasehold = await Leasehold.open(store, { clock, holder: 'me', ...options })
  const events: string[] = []
  for (const name of ['renewed', 'broken', 'lapsed', 'recovered', 'lost'] as const) {
    leasehold.on(name, () => events.push(name))
  }
  return { clock, inner, store, leasehold, events }
}

describe('a loss is reported once', () => {
  it('even if a pending renewal learns of it later', async () => {
    const { clock, inner, store, leasehold, events } = await open()
    const lock = await leasehold.lock('k', { strategy: 'reservation', ttl: '10s' })
    await clock.settle()
    store.fault = (call) => (call === 'renew' ? { there: 100 } : undefined)
    lock.renew().catch(() => {})
    await inner.revoke({ target: { lease: lock.lease } })
    await clock.advance(1000)
    expect(events).toEqual(['lost'])
  })

  it('and no event follows it, even if a late answer reports a break', async () => {
    const { clock, inner, store, leasehold, events } = await open()
    const lock = await leasehold.lock('k', { ttl: '2s' })
    // The client learns of the break only by the answer.
    store.watch = () => ({ close() {} })
    store.interrupt()
    await clock.advance(100)
    await inner.revoke({ target: { lease: lock.lease }, by: 'ops', after: 1800 })
    store.fault = (call) => (call === 'renew' ? { back: 5000 } : undefined)
    await clock.advance(10_000)
    expect(events).toEqual(['lost'])
  })

  it('and an answer that proves the loss is not a renewal', async () => {
    const { clock, inner, store, leasehold, events } = await open({ jitter: 0 })
    const lock = await leasehold.lock('k', { ttl: '10s' })
    store.watch = () => ({ close() {} })
    store.interrupt()
    await clock.advance(100)
    await inner.revoke({ target: { lease: lock.lease }, by: 'ops', after: 6000 })
    store.fault = (call) => (call === 'renew' ? { back: 3000 } : undefined)
    await clock.advance(10_000)
    expect(lock.signal.reason).toMatchObject({ code: 'lost', reason: 'broken', by: 'ops' })
    expect(events).toEqual(['broken', 'lost'])
  })

  it('and the lease is revoked once, even if a claim under it is answered later', async () => {
    const { clock, store, leasehold, events } = await open()
    await leasehold.lock('other', { ttl: '2s' })
    store.fault = (call) => {
      if (call === 'renew') return { lost: 'request' }
      return call === 'claim' ? { back: 3000 } : undefined
    }
    const waiting = leasehold.lock('k', { ttl: '2s' })
    await clock.advance(3000)
    expect((await waiting).held).toBe(true)
    expect([events, store.count('revoke')]).toEqual([['lost'], 1])
  })

  it('but not if nothing was held under it: an idle lease, or one with waiters only', async () => {
    const { clock, inner, leasehold, events } = await open()
    const lock = await leasehold.lock('k')
    await lock.release()
    await inner.revoke({ target: { lease: lock.lease } })
    await clock.settle()
    const rival = await Leasehold.open(inner, { clock, holder: 'rival' })
    await rival.lock('k', { ttl: '1h' })
    const waiting = leasehold.lock('k', { ttl: '2s' }).catch((error: unknown) => error)
    await clock.settle()
    const { claims } = await inner.read({ key: 'k' })
    await inner.revoke({ target: { lease: claims[1]!.lease } })
    expect(await waiting).toMatchObject({ code: 'lost', reason: 'revoked' })
    expect(events).toEqual([])
  })

  it('but not when the client is closed: then it is reported as closed', async () => {
    const { leasehold, events } = await open()
    const lock = await leasehold.lock(['a', 'b'])
    const released = await leasehold.lock('c')
    await released.release()
    const closed: unknown[] = []
    leasehold.on('closed', (event) => closed.push(event))
    await leasehold.close()
    const { lease, claimToken: token } = lock
    expect(closed).toEqual([
      {
        lease,
        claims: [
          { key: 'a', token },
          { key: 'b', token },
        ],
      },
    ])
    expect(events).toEqual([])
    expect(lock.signal.reason).toMatchObject({ code: 'lost', reason: 'closed' })
  })
})
