import { describe, expect, it } from 'vitest'
import { Client, type HoldOptions } from '../../../src/client/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { FaultyStore } from '../faulty-store.ts'

/** A multiple of all steps, which are powers of two. */
const START = 2 ** 20

/** The first random number places the steps of renewals; then follow those of jitter and retries. */
function open(options = {}, draws: readonly number[] = [0]) {
  const clock = new TestClock(START)
  const inner = memoryStore({ clock })
  const store = new FaultyStore(inner, clock, true)
  let drawn = 0
  const random = { next: () => draws[Math.min(drawn++, draws.length - 1)]!, id: () => 'id' }
  const client = new Client(store, {
    ...{ clock, random, jitter: 0, drift: 0, margin: 0 },
    ...options,
  })
  const sent: number[] = []
  const events: string[] = []
  for (const name of ['leased', 'renewed', 'lapsed', 'recovered', 'lost'] as const) {
    client.on(name, () => events.push(name))
  }
  store.fault = (call) => {
    if (call === 'renew') sent.push(clock.now() - START)
    return undefined
  }
  const hold = (options: HoldOptions, key = 'k') => client.hold([{ key }], options)
  const leases = async () => (await inner.read({ leases: true })).leases.length
  return { clock, inner, store, client, sent, events, hold, leases }
}

/** Renewals are noted, and do not reach the store. */
function loseRenewals(store: FaultyStore): void {
  const { fault } = store
  store.fault = (call) => {
    fault(call)
    return call === 'renew' ? { lost: 'request' } : undefined
  }
}

describe('a lease is renewed', () => {
  it('at half of its ttl, at a step that leases with nearly the same pace share', async () => {
    const { clock, hold, sent, events } = open()
    await hold({ ttl: 20_000 })
    await clock.advance(20_000)
    expect(events).toEqual(['leased', 'renewed', 'renewed'])
    // Steps of 1024 ms: the greatest power of two within an eighth of ten seconds.
    expect(sent).toEqual([9216, 18_432])
  })

  it('at other steps than the clients that drew another place', async () => {
    const { clock, hold, sent } = open({}, [0.25])
    await hold({ ttl: 20_000 })
    await clock.advance(10_000)
    expect(sent).toEqual([9984])
  })

  it('earlier at random, with jitter', async () => {
    const { clock, hold, sent } = open({ jitter: 0.5 }, [0, 1])
    await hold({ ttl: 16_384 })
    await clock.advance(8191)
    expect(sent).toEqual([4096])
  })

  it('more and more often while no renewal is answered, and never after its end', async () => {
    const { clock, store, hold, sent, events } = open()
    loseRenewals(store)
    const held = await hold({ ttl: 16_384 })
    await clock.advance(16_383)
    expect(held.held).toBe(true)
    expect(sent.slice(0, 3)).toEqual([8192, 9216, 10_112])
    const gaps = sent.slice(1).map((time, i) => time - sent[i]!)
    expect(gaps).toEqual([...gaps].sort((a, b) => b - a))
    // At most as often as a fiftieth of its pace, and three quarters of that by jitter.
    expect(Math.min(...gaps)).toBeCloseTo(122.88)
    await clock.advance(1)
    expect([held.state, events]).toEqual(['lost', ['leased', 'lost']])
    const before = sent.length
    await clock.advance(60_000)
    expect(sent.length).toBe(before)
  })

  it('later by up to a third at random, while no renewal is answered', async () => {
    const { clock, store, hold, sent } = open({}, [0, 1])
    loseRenewals(store)
    await hold({ ttl: 12_288 })
    await clock.advance(7168)
    // The second comes after a sixth of the remaining time. A random number of 0 would give an eighth.
    expect(sent).toEqual([6144, 7168])
  })

  it('as often as before while no renewal is answered, although a claim starts to wait', async () => {
    const { clock, inner, store, hold, sent } = open()
    await inner.grant({ holder: 'x', ttl: Infinity, claims: [{ key: 'taken' }] })
    loseRenewals(store)
    await hold({ ttl: 16_384 })
    await clock.advance(8500)
    hold({ ttl: 16_384 }, 'taken').catch(() => {})
    await clock.advance(2000)
    expect(sent).toEqual([8192, 9216, 10_112])
  })

  it('and the event names the lease and its ttl', async () => {
    const { clock, client, hold } = open()
    const renewed: unknown[] = []
    client.on('renewed', (event) => renewed.push(event))
    const { lease } = await hold({ ttl: 16_384 })
    await clock.advance(8192)
    expect(renewed).toEqual([{ lease, ttl: 16_384 }])
  })

  it('for any earlier answer: an older answer that arrives later changes nothing', async () => {
    const { clock, store, hold } = open()
    const delays = [3000, 0]
    store.fault = (call) => (call === 'renew' ? { back: delays.shift() ?? 0 } : undefined)
    const held = await hold({ strategy: 'reservation', ttl: 10_000 })
    await clock.advance(1000)
    const older = held.renew()
    await clock.advance(1000)
    await held.renew()
    await clock.advance(2000)
    await older
    expect(held.remaining()).toBe(8000)
  })

  it('on its time although another lease has an infinite ttl', async () => {
    const { clock, hold, sent } = open()
    await hold({ ttl: 16_384 }, 'a')
    await hold({ ttl: 'infinite' }, 'b')
    await clock.advance(8192)
    expect(sent).toEqual([8192])
  })

  it('not any more when an answer has said that a break ends it', async () => {
    const { clock, inner, hold, sent } = open()
    const held = await hold({ ttl: 16_384 })
    await clock.settle()
    await inner.revoke({ target: { lease: held.lease }, after: 12_000 })
    await clock.advance(11_999)
    // The client asks once how much time is left.
    expect([held.held, sent]).toEqual([true, [0]])
  })

  it('without success if the store is unreachable, and the loss has the last error as its cause', async () => {
    const { clock, store, hold } = open({ margin: 100 })
    const error = new Error('no route')
    store.fault = (call) => (call === 'renew' ? { error } : undefined)
    const held = await hold({ ttl: 16_384 })
    await clock.advance(16_384)
    expect(held.signal.reason).toMatchObject({ reason: 'unreachable', cause: { cause: error } })
  })

  it('by its strategy and ttl alone: an infinite one, a reservation and a cache are not', async () => {
    const { clock, hold, sent } = open()
    await hold({ ttl: 'infinite' }, 'a')
    await hold({ strategy: 'reservation', ttl: '1m' }, 'b')
    await hold({ strategy: 'cache', ttl: '1m' }, 'c')
    await hold({ strategy: 'session', ttl: '1m' }, 'd')
    await clock.advance(59_000)
    expect(sent).toEqual([])
  })

  it('at its pace, not sooner because a claim under it has waited and holds', async () => {
    const { clock, inner, client, sent } = open()
    const granted = await inner.grant({ holder: 'x', ttl: Infinity, claims: [{ key: 'k' }] })
    const waiting = client.hold([{ key: 'k' }], { ttl: 16_384 })
    await clock.advance(1000)
    if (granted.outcome === 'granted') await inner.revoke({ target: { lease: granted.lease } })
    await waiting
    await clock.advance(1000)
    expect(sent).toEqual([])
  })

  it('while it waits in the queue, for any strategy, and once when it holds', async () => {
    const { clock, inner, client, sent } = open()
    const granted = await inner.grant({ holder: 'x', ttl: Infinity, claims: [{ key: 'k' }] })
    const waiting = client.hold([{ key: 'k' }], { strategy: 'reservation', ttl: 16_384 })
    await clock.advance(20_000)
    expect(sent).toEqual([8192, 16_384])
    if (granted.outcome === 'granted') await inner.revoke({ target: { lease: granted.lease } })
    await clock.settle()
    const held = await waiting
    await clock.settle()
    expect(sent).toEqual([8192, 16_384, 20_000])
    expect(held.remaining()).toBe(16_384)
    await clock.advance(16_383)
    expect(sent).toHaveLength(3)
    expect(held.held).toBe(true)
    await clock.advance(1)
    expect(held.state).toBe('lost')
  })
})

describe('a lease that nothing is held under', () => {
  it('is kept for one more round if it is shared, and ends then', async () => {
    const { clock, inner, hold, leases, sent, events } = open()
    const held = await hold({ ttl: 16_384 })
    await held.release()
    const ends: unknown[] = []
    inner.watch({ lease: held.lease }, (notice) => {
      if (notice.type === 'gone') ends.push(notice.end)
    })
    await clock.advance(8192)
    expect([await leases(), sent]).toEqual([1, [8192]])
    await clock.advance(8191)
    expect(await leases()).toBe(1)
    await clock.advance(1)
    expect([await leases(), sent]).toEqual([0, [8192]])
    expect(events).not.toContain('lost')
    expect(ends).toMatchObject([{ reason: 'revoked', why: 'unused' }])
  })

  it('is kept for longer if it was used meanwhile', async () => {
    const { clock, hold, leases } = open()
    await (await hold({ ttl: 16_384 })).release()
    await clock.advance(9000)
    await (await hold({ ttl: 16_384 })).release()
    await clock.advance(3 * 8192 - 9001)
    expect(await leases()).toBe(1)
    await clock.advance(1)
    expect(await leases()).toBe(0)
  })

  it('ends at once if it was created for one claim', async () => {
    const { clock, hold, leases } = open()
    await (await hold({ ttl: 16_384, labels: { a: 'b' } })).release()
    await clock.settle()
    expect(await leases()).toBe(0)
  })
})

describe('activity', () => {
  it('renews at most once in a twentieth of the ttl, and late if it is called earlier', async () => {
    const { clock, hold, sent } = open()
    const held = await hold({ strategy: 'session', ttl: 20_000 })
    await clock.advance(400)
    held.touch()
    held.touch()
    await clock.advance(599)
    expect(sent).toEqual([])
    await clock.advance(1)
    expect(sent).toEqual([1000])
    await clock.advance(5000)
    held.touch()
    await clock.advance(0)
    expect(sent).toEqual([1000, 6000])
    await clock.advance(19_999)
    expect(held.held).toBe(true)
    await clock.advance(1)
    expect(held.state).toBe('lost')
  })

  it('does not make a renewal later that is tried again', async () => {
    const { clock, store, hold, sent } = open()
    loseRenewals(store)
    const held = await hold({ strategy: 'session', ttl: 20_000 })
    for (let ms = 0; ms < 19_900; ms += 100) {
      held.touch()
      await clock.advance(100)
    }
    const last = sent.filter((time) => time > 17_000)
    const gaps = last.slice(1).map((time, i) => time - last[i]!)
    expect(Math.max(...gaps)).toBeLessThan(500)
  })

  it('does nothing for other strategies, and after a release or a loss', async () => {
    const { clock, client, hold, sent } = open()
    const other = await hold({ strategy: 'reservation', ttl: 20_000 }, 'a')
    const released = await hold({ strategy: 'session', ttl: 20_000 }, 'b')
    const lost = await hold({ strategy: 'session', ttl: 5000 }, 'c')
    await released.release()
    await clock.advance(6000)
    expect(lost.state).toBe('lost')
    for (const held of [other, released, lost]) held.touch()
    await clock.advance(1000)
    expect(sent).toEqual([])
    await client.close()
  })
})

describe('a renewal by hand', () => {
  it('gives the full ttl again', async () => {
    const { clock, hold } = open()
    const held = await hold({ strategy: 'reservation', ttl: 10_000 })
    await clock.advance(6000)
    expect(held.remaining()).toBe(4000)
    await held.renew()
    expect(held.remaining()).toBe(10_000)
  })

  it('leaves the next one to its holder, even if it is requested at once', async () => {
    const { clock, hold, sent } = open()
    const held = await hold({ strategy: 'reservation', ttl: 10_000 })
    await held.renew()
    await clock.advance(9999)
    expect(sent).toEqual([0])
  })

  it('fails with lost if the lease ends meanwhile', async () => {
    const { clock, store, inner, hold } = open()
    const held = await hold({ strategy: 'reservation', ttl: 10_000 })
    store.fault = (call) => (call === 'renew' ? { lost: 'request' } : undefined)
    const failed = held.renew().catch((error) => error)
    await clock.advance(100)
    await inner.revoke({ target: { lease: held.lease }, by: 'ops', why: 'drain' })
    await clock.settle()
    const error = await failed
    expect(error).toMatchObject({ code: 'lost', reason: 'revoked', by: 'ops', why: 'drain' })
    expect(error.message).toContain(`"${held.lease}" is held no more`)
  })

  it('fails with closed or lost if the client is closed meanwhile', async () => {
    const { store, client, hold } = open()
    const held = await hold({ strategy: 'reservation', ttl: 10_000 })
    store.fault = (call) => (call === 'renew' ? { lost: 'request' } : undefined)
    const failed = held.renew().catch((error) => error)
    await client.close()
    expect(await failed).toMatchObject({ code: 'lost', reason: 'closed' })
  })
})

describe('the purpose of a grace', () => {
  it('the lease lapses when its ttl is over and is lost when its grace is', async () => {
    const { clock, store, hold, events } = open()
    loseRenewals(store)
    const held = await hold({ ttl: 10_000, grace: 5000 })
    await clock.advance(9999)
    expect([held.state, held.remaining()]).toEqual(['held', 1])
    await clock.advance(1)
    expect([held.state, held.remaining()]).toEqual(['lapsed', 0])
    await clock.advance(4999)
    expect([held.state, events]).toEqual(['lapsed', ['leased', 'lapsed']])
    await clock.advance(1)
    expect([held.state, events]).toEqual(['lost', ['leased', 'lapsed', 'lost']])
  })

  it('the lease lapses when its ttl is over, even if nobody checks', async () => {
    const { clock, hold, events } = open()
    await hold({ strategy: 'reservation', ttl: 10_000, grace: 5000 })
    await clock.advance(9999)
    expect(events).toEqual(['leased'])
    await clock.advance(1)
    expect(events).toEqual(['leased', 'lapsed'])
  })

  it.each([
    [5000, /within ttl 10s and grace 5s$/],
    [0, /within ttl 10s$/],
  ])(
    'a loss after a grace of %s ms says for how long the lease was kept',
    async (grace, message) => {
      const { clock, store, hold } = open({ margin: 100 })
      loseRenewals(store)
      const held = await hold({ ttl: 10_000, grace })
      await clock.advance(15_000)
      expect(held.signal.reason.message).toMatch(message)
    },
  )

  it('the event names the lease and its ttl', async () => {
    const { clock, store, client, hold } = open({ margin: 100 })
    const reported: unknown[] = []
    for (const name of ['lapsed', 'recovered'] as const) client.on(name, (it) => reported.push(it))
    const { lease } = await hold({ ttl: 10_000, grace: 60_000 })
    const { fault } = store
    loseRenewals(store)
    await clock.advance(11_000)
    store.fault = fault
    await clock.advance(10_000)
    expect(reported).toEqual([
      { lease, ttl: 10_000 },
      { lease, ttl: 10_000 },
    ])
  })

  it('an answer that proves nothing beyond this moment does not recover it', async () => {
    const { clock, store, hold, events } = open()
    store.fault = (call) => (call === 'renew' ? { back: 10_000 } : undefined)
    const held = await hold({ ttl: 10_000, renewEvery: 2000, grace: 30_000 })
    await clock.advance(30_000)
    expect([held.state, events.includes('recovered')]).toEqual(['lapsed', false])
  })

  it('an old answer that proves too little does not recover it', async () => {
    const { clock, store, hold } = open()
    store.fault = (call) => (call === 'renew' ? { back: 9000 } : undefined)
    const held = await hold({ ttl: 10_000, renewEvery: 2000, grace: 30_000 })
    // Sent after two seconds and answered after eleven: it proves twelve.
    await clock.advance(10_500)
    expect(held.state).toBe('lapsed')
    await clock.advance(700)
    expect(held.state).toBe('held')
    expect(held.remaining()).toBeLessThan(10_000 - 9000)
  })
})
