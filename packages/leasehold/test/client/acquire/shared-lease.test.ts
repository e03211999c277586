import { describe, expect, it, vi } from 'vitest'
import { Leasehold } from '../../../src/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { FaultyStore } from '../faulty-store.ts'

async function open(options = {}) {
  const clock = new TestClock()
  const inner = memoryStore({ clock })
  const store = new FaultyStore(inner, clock, true)
  const leasehold = await Leasehold.open(store, { clock, holder: 'me', ...options })
  const events: string[] = []
  for (const name of ['leased', 'renewed', 'lapsed', 'recovered', 'lost'] as const) {
    leasehold.on(name, () => events.push(name))
  }
  return { clock, inner, store, leasehold, events }
}

async function leasesOf(store: FaultyStore) {
  return (await store.read({ leases: true })).leases
}

describe('a shared lease', () => {
  it('serves all locks with the same ttl, however many start at once', async () => {
    const { store, leasehold } = await open()
    const locks = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        leasehold.lock(`k/${i}`, { ttl: i % 2 ? '30s' : 30000 }),
      ),
    )
    expect(new Set(locks.map((lock) => lock.lease)).size).toBe(1)
    expect(store.count('grant')).toBe(1)
    expect(store.count('claim')).toBe(49)
  })

  it('is taken together with the first lock in one call', async () => {
    const { store, leasehold } = await open()
    await leasehold.lock('k')
    expect(store.calls).toEqual(['grant'])
  })

  it('is another one for another ttl or grace', async () => {
    const { leasehold } = await open()
    const a = await leasehold.lock('a', { ttl: 1000 })
    const b = await leasehold.lock('b', { ttl: 2000 })
    const c = await leasehold.lock('c', { ttl: 1000, grace: 100 })
    expect(new Set([a.lease, b.lease, c.lease]).size).toBe(3)
  })

  it('is renewed for as long as something is held, without end', async () => {
    const { clock, leasehold, events } = await open()
    const lock = await leasehold.lock('k', { ttl: '2s' })
    const { token } = lock
    await clock.advance(60_000)
    expect(lock.held).toBe(true)
    expect(lock.token).toBe(token)
    expect(events).not.toContain('lapsed')
  })

  it('is renewed together with others in one call when they are due at about the same time', async () => {
    const { clock, store, leasehold } = await open({ jitter: 0 })
    for (const ttl of [10_000, 10_001, 10_002, 10_003]) await leasehold.lock(`k/${ttl}`, { ttl })
    await clock.advance(60_000)
    const alone = 4 * 12
    expect(store.count('renew')).toBeLessThan(alone / 2)
  })

  it('ends when nothing has been held for a while', async () => {
    const { clock, store, leasehold, events } = await open()
    const lock = await leasehold.lock('k', { ttl: '2s' })
    await lock.release()
    await clock.advance(500)
    expect(await leasesOf(store)).toHaveLength(1)
    await clock.advance(5000)
    expect(await leasesOf(store)).toHaveLength(0)
    expect(events).not.toContain('lost')
  })

  it('makes room for another when it has as many claims as it may', async () => {
    const clock = new TestClock()
    const store = memoryStore({ clock, limits: { claimsPerLease: 3 } })
    const leasehold = await Leasehold.open(store, { clock })
    const locks = await Promise.all(Array.from({ length: 30 }, (_, i) => leasehold.lock(`k/${i}`)))
    expect(locks.every((lock) => lock.held)).toBe(true)
    expect(new Set(locks.map((lock) => lock.lease)).size).toBe(10)
  })

  it('is kept after an exceeded limit that another lease would exceed too', async () => {
    const clock = new TestClock()
    const store = memoryStore({ clock, limits: { claimsPerKey: 2 } })
    const leasehold = await Leasehold.open(store, { clock })
    const first = await leasehold.lock('k')
    leasehold.lock('k').catch(() => undefined)
    await expect(leasehold.lock('k')).rejects.toMatchObject({ code: 'limit-exceeded' })
    const other = await leasehold.lock('other')
    expect(other.lease).toBe(first.lease)
  })

  it('is not used if the first of several tries finds its key taken', async () => {
    const { inner, store, leasehold } = await open()
    const other = await Leasehold.open(inner, { holder: 'other' })
    await other.lock('taken')
    const tries = await Promise.all([
      leasehold.tryLock('taken'),
      leasehold.tryLock('taken'),
      leasehold.tryLock('free'),
    ])
    expect(tries.map((it) => it.conflict?.holder)).toEqual(['other', 'other', undefined])
    expect(store.count('grant')).toBe(2)
  })
})

describe('a lease for one claim', () => {
  it('is given to a lock with a limit on holding, a parent or labels, and ends with it', async () => {
    const { clock, store, leasehold } = await open()
    const shared = await leasehold.lock('a')
    const own = [
      await leasehold.lock('b', { maxHold: '1m' }),
      await leasehold.lock('c', { parent: shared.lease }),
      await leasehold.lock('d', { labels: { team: 'blue' } }),
    ]
    expect(new Set([shared, ...own].map((lock) => lock.lease)).size).toBe(4)
    for (const lock of own) await lock.release()
    await clock.settle()
    expect((await leasesOf(store)).map((lease) => lease.id)).toEqual([shared.lease])
  })

  it('is lost in time when it has been held for maxHold, renewed or not', async () => {
    const { clock, inner, leasehold } = await open()
    const lock = await leasehold.lock('k', { ttl: '1s', maxHold: '5s' })
    const other = await Leasehold.open(inner, { clock })
    const next = other.lock('k')
    let abortedAt = 0
    const start = clock.now()
    lock.signal.addEventListener('abort', () => {
      abortedAt = clock.now() - start
    })
    await clock.advance(4800)
    expect(lock.held).toBe(true)
    await clock.advance(300)
    expect(lock.state).toBe('lost')
    expect(lock.signal.reason).toMatchObject({ code: 'lost', reason: 'expired' })
    expect(lock.signal.reason.message).toContain('held for as long as it may be')
    expect(abortedAt).toBeLessThan(5000)
    expect((await next).held).toBe(true)
  })

  it('does not count the time in the queue towards maxHold', async () => {
    const { clock, leasehold } = await open()
    const first = await leasehold.lock('k')
    const second = leasehold.lock('k', { ttl: '1s', maxHold: '5s' })
    await clock.advance(60_000)
    await first.release()
    const lock = await second
    await clock.advance(4800)
    expect(lock.held).toBe(true)
    await clock.advance(300)
    expect(lock.held).toBe(false)
  })

  it('bounds a try by maxHold at the store itself', async () => {
    const { clock, inner, leasehold } = await open()
    const { lock } = await leasehold.tryLock('k', { ttl: '1s', maxHold: '5s' })
    const { lease } = await inner.read({ lease: lock!.lease })
    expect(lease!.endOfLife - clock.now()).toBe(5000)
  })

  it('knows that maxHold limits a try, although the store never answers again', async () => {
    const { clock, store, leasehold } = await open()
    const { lock } = await leasehold.tryLock('k', { ttl: '5s', maxHold: '5s' })
    store.freeze()
    await clock.advance(5000)
    expect(lock!.signal.reason).toMatchObject({ code: 'lost', reason: 'expired' })
  })
})

describe('strategies', () => {
  it('session: is kept by activity, and ends a ttl after the last', async () => {
    const { clock, leasehold } = await open()
    const lock = await leasehold.lock('k', { strategy: 'session', ttl: '100s' })
    for (let i = 0; i < 20; i++) {
      await clock.advance(60_000)
      expect(lock.held).toBe(true)
      lock.touch()
      await clock.settle()
    }
    await clock.advance(90_000)
    expect(lock.held).toBe(true)
    await clock.advance(15_000)
    expect(lock.state).toBe('lost')
  })

  it('session: renews at most once in a twentieth of its ttl', async () => {
    const { clock, store, leasehold } = await open()
    const lock = await leasehold.lock('k', { strategy: 'session', ttl: '100s' })
    for (let i = 0; i < 1000; i++) {
      await clock.advance(10)
      lock.touch()
    }
    expect(store.count('renew')).toBeLessThanOrEqual(2)
  })

  it('reservation: is renewed only on request', async () => {
    const { clock, store, leasehold } = await open()
    const lock = await leasehold.lock('k', { strategy: 'reservation', ttl: '10s' })
    await clock.advance(8000)
    expect(store.count('renew')).toBe(0)
    await lock.renew()
    await clock.advance(8000)
    expect(lock.held).toBe(true)
    await clock.advance(2000)
    expect(lock.signal.reason).toMatchObject({ code: 'lost', reason: 'expired' })
    await expect(lock.renew()).rejects.toMatchObject({ code: 'lost' })
  })

  it('reservation: is kept while it waits in the queue, and its time starts when it is held', async () => {
    const { clock, leasehold } = await open()
    const first = await leasehold.lock('k')
    const second = leasehold.lock('k', { strategy: 'reservation', ttl: '10s' })
    await clock.advance(64_000)
    await first.release()
    const lock = await second
    await clock.settle()
    expect(lock.remaining()).toBeGreaterThan(9500)
    await clock.advance(10_000)
    expect(lock.held).toBe(false)
  })

  it('cache: is never renewed, and refuses to be', async () => {
    const { clock, store, leasehold } = await open()
    const lock = await leasehold.lock('k', { strategy: 'cache', ttl: '10s' })
    await expect(lock.renew()).rejects.toMatchObject({ code: 'invalid-argument' })
    await clock.advance(9000)
    expect(lock.held).toBe(true)
    await clock.advance(1000)
    expect(lock.held).toBe(false)
    expect(store.count('renew')).toBe(0)
  })

  it('election: is renewed three times within its ttl', async () => {
    const { clock, store, leasehold } = await open({ jitter: 0 })
    await leasehold.lock('k', { strategy: 'election' })
    await clock.advance(10_000)
    expect(store.count('renew')).toBe(3)
  })

  it('holds forever with an infinite ttl, without renewals', async () => {
    const { clock, store, leasehold } = await open()
    const lock = await leasehold.lock('k', { ttl: 'infinite' })
    await clock.advance(1e9)
    expect(lock.held).toBe(true)
    expect(lock.remaining()).toBe(Infinity)
    expect(store.count('renew')).toBe(0)
    await lock.release()
    await clock.settle()
    expect(await leasesOf(store)).toHaveLength(0)
  })

  it('renews earlier at random, and never later, so that clients spread out', async () => {
    const counts: number[] = []
    for (const chance of [0, 0.9]) {
      // The first random number places the steps of renewals; the rest is the jitter.
      let draws = 0
      const random = { next: () => (draws++ === 0 ? 0 : chance), id: () => 'id' }
      const { clock, store, leasehold } = await open({ random, jitter: 0.5 })
      await leasehold.lock('k', { ttl: '10s' })
      await clock.advance(4000)
      counts.push(store.count('renew'))
      await clock.advance(1000)
      expect(store.count('renew')).toBeGreaterThan(0)
    }
    expect(counts).toEqual([0, 1])
  })

  it('fulfils a requested renewal only by one that was sent afterwards', async () => {
    const { clock, store, leasehold } = await open()
    const lock = await leasehold.lock('k', { ttl: '10s' })
    store.fault = (call) => (call === 'renew' ? { back: 100 } : undefined)
    while (store.count('renew') === 0) await clock.advance(10)
    await clock.advance(50)
    let renewed = false
    void lock.renew().then(() => {
      renewed = true
    })
    await clock.advance(80)
    expect(renewed).toBe(false)
    await clock.advance(50)
    expect(renewed).toBe(true)
  })

  it('immediately ends a requested renewal whose lease was then released', async () => {
    const { clock, store, leasehold } = await open()
    const lock = await leasehold.lock('k', { ttl: '10s', maxHold: '1h' })
    store.fault = (call) => (call === 'renew' ? { back: 100 } : undefined)
    let ended: unknown
    lock.renew().catch((error) => {
      ended = error.code
    })
    await lock.release()
    await clock.advance(200)
    expect(ended).toBe('claim-not-found')
  })

  it('counts less than the ttl for a lease, by the drift and the margin', async () => {
    const byDefault = await open()
    expect((await byDefault.leasehold.lock('k', { ttl: '10s' })).remaining()).toBe(9850)
    expect((await byDefault.leasehold.lock('l', { ttl: 100 })).remaining()).toBe(94)
    const chosen = await open({ drift: 0.1, margin: '1s' })
    expect((await chosen.leasehold.lock('k', { ttl: '10s' })).remaining()).toBe(8000)
  })
})

describe('events', () => {
  it('are not written or warned of without a logger', async () => {
    const { leasehold } = await open()
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
    await (await leasehold.lock('k')).release()
    expect(warn).not.toHaveBeenCalled()
    warn.mockRestore()
  })

  it('continue, and so do heartbeats, if a listener throws', async () => {
    const { clock, leasehold, events } = await open()
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
    leasehold.on('renewed', () => {
      throw new Error('a bad listener')
    })
    const lock = await leasehold.lock('k', { ttl: '1s' })
    await clock.advance(10_000)
    expect(lock.held).toBe(true)
    expect(events.filter((name) => name === 'renewed').length).toBeGreaterThan(5)
    expect(warn).toHaveBeenCalledWith(expect.objectContaining({ message: 'a bad listener' }))
    warn.mockRestore()
  })

  it('are notified until they stop listening', async () => {
    const { clock, leasehold } = await open()
    let renewals = 0
    const end = leasehold.on('renewed', () => renewals++)
    await leasehold.lock('k', { ttl: '1s' })
    await clock.advance(600)
    end()
    await clock.advance(5000)
    expect(renewals).toBe(1)
  })
})
