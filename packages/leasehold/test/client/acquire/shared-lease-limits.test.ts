import { describe, expect, it } from 'vitest'
import { Leasehold, type LockOptions } from '../../../src/index.ts'
import { LeaseholdError } from '../../../src/port/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { FaultyStore } from '../faulty-store.ts'

async function open(inProcess = true, limits = {}) {
  const clock = new TestClock()
  const inner = memoryStore({ clock, limits })
  const store = new FaultyStore(inner, clock, inProcess)
  const leasehold = await Leasehold.open(store, { clock, holder: 'me', jitter: 0 })
  const rival = await Leasehold.open(inner, { clock, holder: 'rival' })
  const leases = async () => (await inner.read({ leases: true })).leases
  return { clock, inner, store, leasehold, rival, leases }
}

describe('locks share a lease', () => {
  it.each<[string, LockOptions, LockOptions, boolean]>([
    ['with the same options', { ttl: '10s' }, { ttl: '10s' }, true],
    ['with the same ttl in other words', { ttl: '10s' }, { ttl: 10_000 }, true],
    ['with the ttl of the strategy', {}, { strategy: 'lock', ttl: '30s' }, true],
    ['but not with another ttl', { ttl: '10s' }, { ttl: '11s' }, false],
    ['but not with another strategy', { ttl: '10s' }, { ttl: '10s', strategy: 'election' }, false],
    ['but not with another grace', { ttl: '10s' }, { ttl: '10s', grace: '1s' }, false],
    ['but not with another pace', { ttl: '10s' }, { ttl: '10s', renewEvery: '1s' }, false],
    ['but not with a strategy that lives by activity', {}, { strategy: 'session' }, false],
    ['but not with an infinite ttl', { ttl: 'infinite' }, { ttl: 'infinite' }, false],
    ['but not with a limit on holding', {}, { maxHold: '1h' }, false],
    ['but not with labels', {}, { labels: { a: 'b' } }, false],
  ])('%s', async (_, one, other, isShared) => {
    for (const [a, b] of [
      [one, other],
      [other, one],
    ] as const) {
      const { leasehold } = await open()
      const [first, second] = [await leasehold.lock('a', a), await leasehold.lock('b', b)]
      expect(first.lease === second.lease).toBe(isShared)
      // The options are known now, and lead to the same leases.
      const [third] = [await leasehold.lock('c', a)]
      const own = a.maxHold ?? a.labels ?? (a.ttl === 'infinite' || a.strategy === 'session')
      expect(third.lease === first.lease).toBe(!own)
    }
  })

  it('even after more kinds of options than a client remembers', async () => {
    const { leasehold } = await open()
    const first = await leasehold.lock('first', { ttl: 10_000 })
    const plain = await leasehold.lock('plain')
    for (let n = 1; n <= 20; n++) {
      await leasehold.lock(`k/${n}`, { ttl: 10_000 + n })
      expect((await leasehold.lock(`plain/${n}`)).lease).toBe(plain.lease)
    }
    for (let n = 1; n <= 20; n++) {
      expect((await leasehold.lock(`l/${n}`, { ttl: 10_000 + n })).lease).not.toBe(first.lease)
      expect((await leasehold.lock(`plain/l/${n}`)).lease).toBe(plain.lease)
    }
    expect((await leasehold.lock('second', { ttl: 10_000 })).lease).toBe(first.lease)
  })

  it('even if hundreds of other ttls were used meanwhile', async () => {
    const { clock, leasehold, rival, leases } = await open()
    const first = await leasehold.lock('first', { ttl: 9000 })
    await rival.lock('taken')
    await leasehold.tryLock('taken', { ttl: 8000 })
    for (let n = 0; n < 300; n++) {
      await (await leasehold.lock('k', { ttl: 10_000 + n })).release()
    }
    await clock.advance(30_000)
    expect(await leases()).toHaveLength(2)
    for (let n = 300; n < 600; n++) {
      await (await leasehold.lock('k', { ttl: 10_000 + n })).release()
      await (await leasehold.lock('plain')).release()
    }
    expect((await leasehold.lock('second', { ttl: 9000 })).lease).toBe(first.lease)
  })
})

describe('a heartbeat', () => {
  it('renews at most 1000 leases in one call', async () => {
    const { clock, inner, leasehold } = await open(true, { renewBatch: 1000 })
    const sizes: number[] = []
    const store = new FaultyStore(inner, clock, true)
    store.renew = (leases) => {
      sizes.push(leases.length)
      return inner.renew(leases)
    }
    const many = await Leasehold.open(store, { clock, jitter: 0 })
    const labels = { a: 'b' }
    const locks = Array.from({ length: 1001 }, (_, n) => many.lock(`k/${n}`, { labels }))
    await Promise.all(locks)
    await clock.advance(15_000)
    expect(sizes).toEqual([1000, 1])
    for (const lock of locks) expect((await lock).held).toBe(true)
    await leasehold.close()
  })

  it('does not renew a lease that was released in the same turn', async () => {
    const { clock, store, leasehold } = await open()
    const lock = await leasehold.lock('k', { strategy: 'reservation', ttl: '10s' })
    const renewed = lock.renew().catch((error) => error.code)
    const released = lock.release()
    await clock.settle()
    await released
    expect(await renewed).toBe('claim-not-found')
    expect(store.count('renew')).toBeLessThanOrEqual(1)
  })

  it('sends nothing for a lease whose client was closed in the same turn', async () => {
    const { clock, store, leasehold } = await open()
    const lock = await leasehold.lock('k', { strategy: 'reservation', ttl: '10s' })
    const renewed = lock.renew().catch((error) => error)
    const closed = leasehold.close()
    await clock.settle()
    await closed
    expect(store.count('renew')).toBe(0)
    expect(await renewed).toMatchObject({ code: 'lost', reason: 'closed' })
  })

  it('continues if the store throws instead of answering', async () => {
    const { clock, inner, store, leasehold } = await open()
    const lock = await leasehold.lock('k', { ttl: '10s' })
    const { renew } = store
    let throws = 2
    store.renew = (leases) => {
      if (throws-- > 0) throw new Error('broken')
      return renew.call(store, leases)
    }
    await clock.advance(20_000)
    expect(lock.held).toBe(true)
    expect((await inner.read({ key: 'k' })).count).toBe(1)
  })
})

describe.each([true, false])('attempts that wait for the same lease (in process: %s)', (isIn) => {
  it('are all served by the lease of the first', async () => {
    const { clock, store, leasehold } = await open(isIn)
    store.fault = (call) => (call === 'grant' ? { back: 100 } : undefined)
    const locks = [1, 2, 3].map((n) => leasehold.lock(`k/${n}`))
    await clock.advance(200)
    const held = await Promise.all(locks)
    expect(new Set(held.map(({ lease }) => lease)).size).toBe(1)
    expect(store.count('grant')).toBe(1)
  })

  it('leave out leases that have ended meanwhile', async () => {
    const { clock, inner, store, leasehold } = await open(isIn)
    store.fault = (call) => (call === 'grant' ? { back: 100 } : undefined)
    const first = leasehold.lock('a')
    const late = leasehold.lock('b', { wait: 50 }).catch((error) => error.code)
    const third = leasehold.lock('c')
    await clock.advance(200)
    expect([(await first).held, await late, (await third).held]).toEqual([true, 'timeout', true])
    expect((await inner.read({ key: 'b' })).count).toBe(0)
    expect(store.count('claim')).toBe(1)
  })

  it('get their own lease if the claim of the first is refused', async () => {
    const { clock, leasehold, store } = await open(isIn)
    const wrong = leasehold.lock('').catch((error) => error.code)
    const others = ['a', 'b', 'c'].map((key) => leasehold.lock(key))
    await clock.settle()
    expect(await wrong).toBe('invalid-argument')
    const held = await Promise.all(others)
    expect(new Set(held.map(({ lease }) => lease)).size).toBe(1)
    expect(store.count('grant')).toBe(2)
  })

  it('get a lease if the first finds its key taken and only one waits', async () => {
    const { clock, leasehold, rival, store } = await open(isIn)
    await rival.lock('taken')
    const tried = leasehold.tryLock('taken')
    const other = leasehold.lock('free')
    await clock.settle()
    expect((await tried).conflict?.holder).toBe('rival')
    expect((await other).held).toBe(true)
    // The claim of the second arrived with its lease.
    expect([store.count('grant'), store.count('claim')]).toEqual([2, 0])
  })

  it('fail together if the store refuses the lease that they were to share', async () => {
    const { clock, leasehold, store } = await open(isIn)
    const error = new LeaseholdError('storage-full', 'no space')
    store.fault = (call) => (call === 'grant' && store.count('grant') > 1 ? { error } : undefined)
    const wrong = leasehold.lock('').catch((thrown) => thrown.code)
    const others = ['a', 'b'].map((key) => leasehold.lock(key).catch((thrown) => thrown.code))
    await clock.advance(1000)
    expect(await wrong).toBe('invalid-argument')
    expect(await Promise.all(others)).toEqual(['storage-full', 'storage-full'])
    expect(store.count('grant')).toBe(2)
  })

  it('fail together if it is unknown whether the lease was granted', async () => {
    const { clock, leasehold, store, leases } = await open(false)
    store.fault = (call) => (call === 'grant' ? { error: new Error('broken') } : undefined)
    const failed = [1, 2, 3].map((n) => leasehold.lock(`k/${n}`).catch((error) => error.code))
    await clock.advance(1000)
    expect(await Promise.all(failed)).toEqual(Array(3).fill('unknown-outcome'))
    store.fault = () => undefined
    expect((await leasehold.lock('k')).held).toBe(true)
    expect(await leases()).toHaveLength(1)
  })
})

describe('a lease that has no room for another claim', () => {
  it('serves again if no other lease is available', async () => {
    const { leasehold, rival, clock, inner } = await open(true, { claimsPerLease: 2 })
    await rival.lock('taken')
    const a = await leasehold.lock('a')
    const b = await leasehold.lock('b')
    // A try would need a new lease, but its key is taken.
    expect((await leasehold.tryLock('taken')).conflict?.holder).toBe('rival')
    await b.release()
    const c = await leasehold.lock('c')
    expect(c.lease).toBe(a.lease)
    await clock.settle()
    expect((await inner.read({ lease: a.lease })).lease?.claims).toBe(2)
  })

  it('serves the waiters for another lease if none is available', async () => {
    const { leasehold, rival, clock, store } = await open(false, { claimsPerLease: 2 })
    await rival.lock('taken')
    const [a, b] = [await leasehold.lock('a'), await leasehold.lock('b')]
    store.fault = (call) => (call === 'grant' ? { back: 100 } : undefined)
    const tried = leasehold.tryLock('taken')
    await b.release()
    const c = leasehold.lock('c')
    await clock.advance(100)
    expect((await tried).conflict?.holder).toBe('rival')
    expect((await c).lease).toBe(a.lease)
  })

  it('does not replace a newer one, however late it is reported as full', async () => {
    const { leasehold, clock, store } = await open(false, { claimsPerLease: 2 })
    await Promise.all([leasehold.lock('a'), leasehold.lock('b')])
    let claims = 0
    store.fault = (call) => (call === 'claim' && ++claims === 2 ? { back: 100 } : undefined)
    const [c, d] = [leasehold.lock('c'), leasehold.lock('d')]
    const newer = (await c).lease
    await clock.advance(100)
    expect((await d).lease).toBe(newer)
    expect(store.count('grant')).toBe(2)
  })

  it('is renewed for as long as something is held under it', async () => {
    const { clock, leasehold } = await open(true, { claimsPerLease: 1 })
    const locks = [await leasehold.lock('a'), await leasehold.lock('b'), await leasehold.lock('c')]
    expect(new Set(locks.map(({ lease }) => lease)).size).toBe(3)
    await clock.advance(120_000)
    expect(locks.every(({ held }) => held)).toBe(true)
  })
})

describe('a lease', () => {
  it('is not requested for a caller that has stopped waiting', async () => {
    const { leasehold, rival, clock, store } = await open(false)
    await rival.lock('taken')
    store.fault = (call) => (call === 'grant' ? { back: 100 } : undefined)
    const tried = leasehold.tryLock('taken')
    const late = leasehold.lock('k', { wait: 50 }).catch(({ code }) => code)
    await clock.advance(1000)
    expect((await tried).conflict?.holder).toBe('rival')
    expect(await late).toBe('timeout')
    expect(store.count('grant')).toBe(1)
  })

  it('is kept while claims under it are pending, whatever the watch reports between them', async () => {
    const { leasehold, inner, clock, store } = await open()
    const first = await leasehold.lock('other')
    await first.release()
    store.fault = (call) => (call === 'claim' ? { back: 80_000 } : undefined)
    const waits = [leasehold.lock('a')]
    await clock.advance(1000)
    // A claim that is unknown here: it may belong to the pending call.
    await inner.claim({ lease: first.lease, claims: [{ key: 'unknown' }] })
    store.interrupt()
    await clock.advance(1000)
    waits.push(leasehold.lock('b'))
    await clock.advance(80_000)
    const leases = (await Promise.all(waits)).map(({ lease }) => lease)
    expect([leases, store.count('grant')]).toEqual([[first.lease, first.lease], 1])
  })

  it('is kept while a claim under it is pending, however long that takes', async () => {
    const { leasehold, rival, clock, store } = await open()
    const first = await leasehold.lock('other')
    await first.release()
    const taken = await rival.lock('k')
    store.fault = (call) => (call === 'claim' ? { back: 80_000 } : undefined)
    const waiting = leasehold.lock('k')
    await clock.advance(1000)
    // The store reports the turn, and has not answered the claim yet.
    await taken.release()
    await clock.advance(80_000)
    const lock = await waiting
    expect([lock.held, lock.lease, store.count('revoke')]).toEqual([true, first.lease, 0])
  })
})
