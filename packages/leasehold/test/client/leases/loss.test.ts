import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Leasehold, type Lock } from '../../../src/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { FaultyStore } from '../faulty-store.ts'
import { RateClock } from './rate-clock.ts'

async function open(options = {}) {
  const clock = new TestClock()
  const inner = memoryStore({ clock })
  const store = new FaultyStore(inner, clock)
  const leasehold = await Leasehold.open(store, { clock, holder: 'me', ...options })
  const events: string[] = []
  for (const name of ['lapsed', 'recovered', 'lost'] as const) {
    leasehold.on(name, () => events.push(name))
  }
  return { clock, inner, store, leasehold, events }
}

function abortTime(lock: Lock, clock: TestClock): () => number {
  let at = Infinity
  lock.signal.addEventListener('abort', () => {
    at = clock.now()
  })
  return () => at
}

const timings = fc.record({
  ttl: fc.integer({ min: 20, max: 5000 }),
  grace: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 3000 })),
  // The holder's clock runs slower than the store's, nearly up to the bound of one in a hundred.
  holderRate: fc.double({ min: 0.9, max: 1.1, noNaN: true }),
  slower: fc.oneof(fc.constant(0.0099), fc.double({ min: 0, max: 0.0099, noNaN: true })),
  offset: fc.integer({ min: -1e6, max: 1e6 }),
  there: fc.integer({ min: 0, max: 400 }),
  back: fc.integer({ min: 0, max: 400 }),
  cutAfter: fc.integer({ min: 0, max: 10_000 }),
  cut: fc.constantFrom('request', 'reply', 'frozen', 'slow', 'error') as fc.Arbitrary<
    'request' | 'reply' | 'frozen' | 'slow' | 'error'
  >,
})

describe('the signal', () => {
  it('aborts before anyone else can hold, for any timing and fault', async () => {
    await fc.assert(
      fc.asyncProperty(timings, async (timing) => {
        const truth = new TestClock()
        const storeClock = new RateClock(truth, timing.holderRate / (1 - timing.slower))
        const holderClock = new RateClock(truth, timing.holderRate, timing.offset)
        const inner = memoryStore({ clock: storeClock })
        const store = new FaultyStore(inner, truth)
        store.fault = () => ({ there: timing.there, back: timing.back })
        const leasehold = await Leasehold.open(store, { clock: holderClock, margin: 0 })
        const pending = leasehold.lock('k', { ttl: timing.ttl, grace: timing.grace })
        const settled = pending.then(
          (lock) => lock,
          () => undefined,
        )
        await truth.advance(timing.there + timing.back + 1)
        if ((timing.there + timing.back) / timing.holderRate > timing.ttl * 0.5) return
        const lock = await settled
        if (lock === undefined) return
        const abortedAt = abortTime(lock, truth)

        const { lease } = (await inner.grant({ holder: 'rival', ttl: Infinity })) as {
          lease: string
        }
        await inner.claim({ lease, claims: [{ key: 'k' }] })
        let rivalAt = Infinity
        let heldThen = true
        inner.watch({ lease }, (notice) => {
          if (notice.type !== 'holds') return
          rivalAt = truth.now()
          heldThen = lock.held || !lock.signal.aborted
        })
        await truth.advance(timing.cutAfter)
        if (timing.cut === 'frozen') store.freeze()
        else if (timing.cut === 'slow')
          store.fault = () => ({ back: (timing.ttl + timing.grace) * 3 })
        else if (timing.cut === 'error') store.fault = () => ({ error: new Error('no route') })
        else {
          const lost = timing.cut
          store.fault = () => ({ lost })
        }
        await truth.advance((timing.ttl + timing.grace) * 40 + 5000)

        // With replies lost or slow the store may be renewed all the while: then the lock is lost
        // here and given up there, which the rival sees when it reaches the store.
        expect(abortedAt()).toBeLessThan(Infinity)
        expect(abortedAt()).toBeLessThanOrEqual(rivalAt)
        if (rivalAt < Infinity) expect(heldThen).toBe(false)
      }),
      { numRuns: 300 },
    )
  }, 240_000)

  it('aborts before the ttl is over when the store is frozen', async () => {
    const { clock, store, leasehold } = await open()
    const start = clock.now()
    const lock = await leasehold.lock('k', { ttl: '2s' })
    const abortedAt = abortTime(lock, clock)
    store.freeze()
    await clock.advance(8000)
    expect(abortedAt() - start).toBeLessThan(2000)
    expect(lock.signal.reason).toMatchObject({ code: 'lost', reason: 'unreachable' })
  })

  it('counts from the first sending of a grant whose reply was lost', async () => {
    const { clock, store, leasehold } = await open({ callTimeout: 500 })
    const start = clock.now()
    let grants = 0
    store.fault = (call) => (call === 'grant' && grants++ === 0 ? { lost: 'reply' } : undefined)
    const pending = leasehold.lock('k', { ttl: '2s' })
    await clock.advance(700)
    const lock = await pending
    expect(store.count('grant')).toBe(2)
    expect(new Set(store.requests).size).toBe(1)
    store.freeze()
    const abortedAt = abortTime(lock, clock)
    await clock.advance(5000)
    expect(abortedAt() - start).toBeLessThan(2000)
  })

  it('counts a renewal from the sending that was answered, not from its answer', async () => {
    const { clock, store, leasehold } = await open({ jitter: 0 })
    const lock = await leasehold.lock('k', { ttl: '2s', renewEvery: '1s' })
    const start = clock.now()
    store.fault = (call) => (call === 'renew' ? { back: 700 } : undefined)
    await clock.advance(1750)
    const renewals = store.count('renew')
    expect(renewals).toBeGreaterThan(0)
    // Only the first renewal can have been answered, and it left after at most a second.
    expect(lock.remaining()).toBeLessThan(start + 1000 + 2000 - clock.now())
    expect(lock.remaining()).toBeGreaterThan(500)
  })

  it('never aborts after a release', async () => {
    const { clock, inner, leasehold } = await open()
    const lock = await leasehold.lock('k', { ttl: '1s' })
    const { signal } = lock
    await lock.release()
    await inner.revoke({ target: { lease: lock.lease } })
    await clock.advance(5000)
    expect(signal.aborted).toBe(false)
    expect(lock.state).toBe('released')
  })

  it('is created on first use, and then reports an earlier loss', async () => {
    const { clock, store, leasehold } = await open()
    const lock = await leasehold.lock('k', { ttl: '1s' })
    store.freeze()
    await clock.advance(2000)
    expect(lock.signal.aborted).toBe(true)
    expect(lock.signal).toBe(lock.signal)
  })
})

describe('after a stall or a suspended machine', () => {
  it('the first statement finds the lock lost and its signal aborted', async () => {
    const { clock, leasehold } = await open()
    const lock = await leasehold.lock('k', { ttl: '1s' })
    const abortedAt = abortTime(lock, clock)
    clock.stall(2500)
    expect(() => lock.token).toThrowError(
      expect.objectContaining({ code: 'lost', reason: 'expired' }),
    )
    expect(abortedAt()).toBe(clock.now())
    expect(lock.held).toBe(false)
    expect(lock.remaining()).toBe(0)
    expect(() => lock.assertHeld()).toThrowError(expect.objectContaining({ code: 'lost' }))
  })

  it('the first statement finds it lost when the machine slept', async () => {
    const { clock, leasehold } = await open()
    const lock = await leasehold.lock('k', { ttl: '30s' })
    clock.sleep(60_000)
    expect(lock.held).toBe(false)
    expect(lock.signal.aborted).toBe(true)
  })

  it('notifies a listener within a second after waking', async () => {
    const { clock, leasehold } = await open()
    const lock = await leasehold.lock('k', { ttl: '1h' })
    const abortedAt = abortTime(lock, clock)
    clock.sleep(2 * 3600_000)
    const woke = clock.now()
    await clock.advance(1000)
    expect(abortedAt() - woke).toBeLessThanOrEqual(1000)
  })

  it('a short stall is survived', async () => {
    const { clock, leasehold } = await open()
    const lock = await leasehold.lock('k', { ttl: '1s' })
    clock.stall(900)
    expect(lock.held).toBe(true)
    await clock.advance(5000)
    expect(lock.held).toBe(true)
  })

  it('an answer that arrived meanwhile saves the lock, if nobody checked before it was processed', async () => {
    for (const lookFirst of [false, true]) {
      const { clock, store, leasehold } = await open({ jitter: 0 })
      const lock = await leasehold.lock('k', { ttl: '1s', renewEvery: '500ms' })
      store.fault = (call) => (call === 'renew' ? { back: 20 } : undefined)
      while (store.count('renew') === 0) await clock.advance(10)
      clock.stall(600)
      if (lookFirst) expect(lock.held).toBe(false)
      await clock.advance(0)
      expect(lock.held).toBe(!lookFirst)
      expect(lock.signal.aborted).toBe(lookFirst)
    }
  })

  it('a lock that is requested then gets a live lease', async () => {
    const { clock, leasehold } = await open()
    const first = await leasehold.lock('a', { ttl: '1s' })
    clock.stall(2500)
    const second = await leasehold.lock('b', { ttl: '1s' })
    expect(first.state).toBe('lost')
    expect(second.held).toBe(true)
  })
})

describe('a grace', () => {
  it('lets a lock lapse and recover with the same token', async () => {
    const { clock, store, leasehold, events } = await open()
    const lock = await leasehold.lock('k', { ttl: '1s', grace: '5s' })
    const { token } = lock
    store.freeze()
    await clock.advance(2000)
    expect(lock.state).toBe('lapsed')
    expect(() => lock.token).toThrowError(expect.objectContaining({ code: 'lapsed' }))
    expect(lock.signal.aborted).toBe(false)
    store.thaw()
    await clock.advance(500)
    expect(lock.token).toBe(token)
    expect(events).toEqual(['lapsed', 'recovered'])
  })

  it('ends in loss, before anyone else can hold, when no renewal gets through', async () => {
    const { clock, inner, store, leasehold, events } = await open()
    const start = clock.now()
    const lock = await leasehold.lock('k', { ttl: '1s', grace: '5s' })
    const abortedAt = abortTime(lock, clock)
    const rival = await Leasehold.open(inner, { clock })
    const next = rival.lock('k')
    store.freeze()
    await clock.advance(5800)
    expect(lock.state).toBe('lapsed')
    await clock.advance(300)
    expect(abortedAt() - start).toBeLessThan(6000)
    expect(events).toEqual(['lapsed', 'lost'])
    expect((await next).held).toBe(true)
  })

  it('gives nobody a lapsed lock: a new one gets a fresh lease', async () => {
    const { clock, store, leasehold } = await open()
    const old = await leasehold.lock('a', { ttl: '1s', grace: '30s' })
    store.fault = (call) => (call === 'renew' ? { lost: 'request' } : undefined)
    await clock.advance(2000)
    expect(old.state).toBe('lapsed')
    const fresh = await leasehold.lock('b', { ttl: '1s', grace: '30s' })
    expect(fresh.held).toBe(true)
    expect(fresh.lease).not.toBe(old.lease)
  })

  it('keeps a turn until the lease recovers, if it had lapsed at that time', async () => {
    const { clock, inner, store, leasehold } = await open()
    const rival = await Leasehold.open(inner, { clock })
    const first = await rival.lock('k')
    let held: Lock | undefined
    void leasehold.lock('k', { ttl: '1s', grace: '30s' }).then((lock) => {
      held = lock
    })
    await clock.settle()
    store.fault = (call) => (call === 'renew' ? { lost: 'request' } : undefined)
    await clock.advance(2000)
    await first.release()
    await clock.advance(100)
    expect(held).toBeUndefined()
    store.fault = () => undefined
    await clock.advance(5000)
    expect(held?.held).toBe(true)
  })
})

describe('a loss is final', () => {
  it('for any late answer, and the key is released at the store', async () => {
    const { clock, inner, store, leasehold, events } = await open()
    const lock = await leasehold.lock('k', { ttl: '1s' })
    const lateReplies = { back: 3000 }
    store.fault = (call) => (call === 'renew' ? lateReplies : undefined)
    await clock.advance(1500)
    expect(lock.state).toBe('lost')
    // The renewals did reach the store, so that it would keep the key for a whole ttl more.
    expect((await inner.read({ key: 'k' })).count).toBe(0)
    await clock.advance(5000)
    expect(lock.state).toBe('lost')
    expect(events).toEqual(['lost'])
  })

  it('and the lease is given up when the store can be reached again', async () => {
    const { clock, inner, store, leasehold } = await open({ callTimeout: 200 })
    const lock = await leasehold.lock('k', { strategy: 'reservation', ttl: '5s' })
    store.fault = () => ({ lost: 'request' })
    await clock.advance(4990)
    await inner.renew([lock.lease])
    expect(lock.state).toBe('lost')
    await clock.advance(1000)
    expect((await inner.read({ key: 'k' })).count).toBe(1)
    store.fault = () => undefined
    await clock.advance(1500)
    expect((await inner.read({ key: 'k' })).count).toBe(0)
  })
})

describe('a loss by force', () => {
  it('names the person and the reason when the lease was revoked', async () => {
    const { clock, inner, leasehold, events } = await open()
    const lock = await leasehold.lock('k')
    const { signal } = lock
    await inner.revoke({ target: { lease: lock.lease }, by: 'ops', why: 'deploy' })
    await clock.settle()
    expect(signal.reason).toMatchObject({
      code: 'lost',
      reason: 'revoked',
      by: 'ops',
      why: 'deploy',
    })
    expect(signal.reason.message).toContain('"ops"')
    expect(events).toEqual(['lost'])
  })

  it('affects one claim, and leaves the others', async () => {
    const { clock, inner, leasehold } = await open()
    const reported: unknown[] = []
    leasehold.on('lost', (loss) => reported.push(loss.claims))
    const a = await leasehold.lock('a')
    const b = await leasehold.lock('b')
    await inner.revoke({ target: { key: 'a' }, by: 'ops', why: 'stuck' })
    await clock.settle()
    expect(a.state).toBe('lost')
    expect(a.signal.reason).toMatchObject({ reason: 'revoked', by: 'ops', why: 'stuck' })
    expect(b.held).toBe(true)
    expect(reported).toEqual([
      [{ key: 'a', token: a.signal.reason.message.match(/token (\d+)/)[1] * 1 }],
    ])
    await a.release()
  })

  it('is known in advance when the lease is broken with a period', async () => {
    const { clock, inner, leasehold } = await open()
    const lock = await leasehold.lock('k', { ttl: '10s' })
    const abortedAt = abortTime(lock, clock)
    await clock.advance(1000)
    const broken = clock.now()
    await inner.revoke({ target: { lease: lock.lease }, by: 'ops', why: 'drain', after: 3000 })
    await clock.advance(2000)
    expect(lock.held).toBe(true)
    expect(lock.remaining()).toBeLessThan(1000)
    await clock.advance(2000)
    expect(abortedAt() - broken).toBeLessThan(3000)
    expect(lock.signal.reason).toMatchObject({ code: 'lost', by: 'ops', why: 'drain' })
  })

  it('is found after an interrupted watch', async () => {
    const { clock, inner, store, leasehold } = await open()
    const lock = await leasehold.lock('k')
    await clock.settle()
    store.interrupt()
    await inner.revoke({ target: { key: 'k' } })
    await clock.settle()
    expect(lock.held).toBe(true)
    await clock.advance(200)
    expect(lock.state).toBe('lost')
  })

  it('is found by the renewal without any notification', async () => {
    const { clock, inner, store, leasehold } = await open()
    const lock = await leasehold.lock('k', { ttl: '10s' })
    store.watch = () => {
      throw new Error('no watches today')
    }
    await clock.settle()
    store.interrupt()
    await inner.revoke({ target: { lease: lock.lease }, by: 'ops' })
    await clock.advance(6000)
    expect(lock.signal.reason).toMatchObject({ reason: 'revoked', by: 'ops' })
  })

  it('goes when the parent goes', async () => {
    const { clock, inner, leasehold } = await open()
    const parent = await leasehold.lock('parent', { labels: { job: '7' } })
    const child = await leasehold.lock('child', { parent: parent.lease })
    await inner.revoke({ target: { lease: parent.lease } })
    await clock.settle()
    expect(child.state).toBe('lost')
  })
})
