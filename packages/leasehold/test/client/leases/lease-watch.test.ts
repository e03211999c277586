import { describe, expect, it } from 'vitest'
import { Client } from '../../../src/client/index.ts'
import { LeaseholdError, type Observer } from '../../../src/port/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { FaultyStore } from '../faulty-store.ts'

/** With a random number of 1 every pause has its maximum: 50 ms, 100 ms, 200 ms and so on. */
const random = { next: () => 1, id: () => 'id' }

function open(inProcess = false) {
  const clock = new TestClock()
  const inner = memoryStore({ clock })
  const store = new FaultyStore(inner, clock, inProcess)
  const client = new Client(store, { clock, random, holder: 'me', jitter: 0 })
  /** Notices of leases wait while this is set, and are delivered in order when it is cleared. */
  let kept: (() => void)[] | undefined
  const opened: number[] = []
  const start = clock.now()
  let broken = 0
  const watch = store.watch.bind(store)
  store.watch = (target, observer) => {
    opened.push(clock.now() - start)
    if (broken-- > 0) throw new LeaseholdError('unknown-outcome', 'broken')
    const delayed: Observer = (notice) => {
      if (kept === undefined) observer(notice)
      else kept.push(() => observer(notice))
    }
    return watch(target, delayed)
  }
  return {
    ...{ clock, inner, store, client, opened },
    breakWatches: (times: number) => {
      broken = times
    },
    keepBack: () => {
      kept = []
    },
    tell: async () => {
      const notices = kept ?? []
      kept = undefined
      for (const notice of notices) notice()
      await clock.settle()
    },
    claims: async (key: string) => (await inner.read({ key })).count,
  }
}

const caught = (promise: Promise<unknown>) => promise.catch((error) => error)

describe('the watch of a lease', () => {
  it('is opened again after it broke, soon at first and then less often', async () => {
    const { clock, store, client, opened, breakWatches } = open()
    await client.hold([{ key: 'k' }], { ttl: '1h' })
    await clock.settle()
    breakWatches(3)
    store.interrupt()
    await clock.advance(1000)
    expect(opened).toEqual([0, 50, 150, 350, 750])
    store.interrupt()
    await clock.advance(1000)
    // It worked in between, so the first pause is short again.
    expect(opened.at(-1)).toBe(1050)
  })

  it('is opened later if the first try fails', async () => {
    const { clock, inner, client, opened, breakWatches } = open()
    breakWatches(1)
    const hold = await client.hold([{ key: 'k' }], { ttl: '1h' })
    await clock.advance(50)
    expect(opened).toEqual([0, 50])
    await inner.revoke({ target: { lease: hold.lease } })
    await clock.settle()
    expect(hold.state).toBe('lost')
  })

  it('is not opened again because a claim was refused', async () => {
    const { clock, client, opened } = open()
    await client.hold([{ key: 'k' }])
    await expect(client.hold([{ key: '' }])).rejects.toMatchObject({ code: 'invalid-argument' })
    await clock.advance(1000)
    expect(opened).toEqual([0])
  })

  it('is not opened again when the lease has ended', async () => {
    const { clock, inner, store, client, opened } = open()
    const hold = await client.hold([{ key: 'k' }], { ttl: '1h' })
    await clock.settle()
    await inner.revoke({ target: { lease: hold.lease } })
    await clock.settle()
    store.interrupt()
    await clock.advance(60_000)
    expect(opened).toEqual([0])
  })

  it('is not opened again when a claim fails after the lease has ended', async () => {
    const { clock, inner, store, client, opened } = open(true)
    const hold = await client.hold([{ key: 'k' }], { ttl: '1h' })
    await clock.settle()
    const claim = store.claim.bind(store)
    store.claim = (request) =>
      claim(request).then(() => Promise.reject(new LeaseholdError('unknown-outcome', 'broken')))
    store.fault = (call) => (call === 'claim' ? { back: 100 } : undefined)
    const other = client.hold([{ key: 'other' }], { ttl: '1h' })
    await clock.advance(50)
    await inner.revoke({ target: { lease: hold.lease } })
    await clock.advance(50)
    // The claim is made again, under a lease with its own watch.
    expect((await other).lease).not.toBe(hold.lease)
    await clock.advance(1000)
    expect(opened).toEqual([0, 100])
  })

  it('is closed when the lease is lost, although the store still has it', async () => {
    const { clock, inner, store, client } = open()
    const events: string[] = []
    for (const name of ['broken', 'lost'] as const) client.on(name, () => events.push(name))
    const hold = await client.hold([{ key: 'k' }], { ttl: '10s' })
    store.fault = (call) =>
      call === 'renew' || call === 'revoke' ? { lost: 'request' } : undefined
    await clock.advance(5000)
    await inner.renew([hold.lease])
    await clock.advance(5000)
    await inner.revoke({ target: { lease: hold.lease }, after: 1000 })
    await clock.settle()
    expect(events).toEqual(['lost'])
  })

  it('is closed when the lease has ended while it rested', async () => {
    const { clock, store, client, opened } = open()
    await client.hold([{ key: 'k' }], { ttl: '1h' })
    await clock.settle()
    store.interrupt()
    await client.close()
    await clock.advance(60_000)
    expect(opened).toEqual([0])
  })
})

describe('the reported standing', () => {
  it('is not held against a claim that is newer', async () => {
    const { client, clock, keepBack, tell, claims } = open()
    keepBack()
    const first = await client.hold([{ key: 'a' }])
    const second = await client.hold([{ key: 'b' }])
    const pair = await client.hold([{ key: 'c' }, { key: 'd' }])
    // The notices now are from before the second and the third.
    await tell()
    await clock.advance(1000)
    for (const hold of [first, second, pair]) expect(hold.held).toBe(true)
    expect(await Promise.all(['a', 'b', 'c', 'd'].map(claims))).toEqual([1, 1, 1, 1])
  })

  it('may list a claim that is being released, which is not released twice', async () => {
    const { clock, store, client, keepBack, tell, claims } = open()
    keepBack()
    const hold = await client.hold([{ key: 'k' }])
    await clock.settle()
    await hold.release()
    await tell()
    await clock.advance(1000)
    expect([store.count('release'), await claims('k')]).toEqual([1, 0])
  })

  it('shows that a claim was taken while the watch was interrupted, fully or in part', async () => {
    const { clock, inner, store, client, claims } = open()
    const whole = await client.hold([{ key: 'a' }])
    const part = await client.hold([{ key: 'b' }, { key: 'c' }])
    const other = await client.hold([{ key: 'd' }, { key: 'e' }])
    await clock.settle()
    store.interrupt()
    await inner.revoke({ target: { key: 'a' } })
    await inner.revoke({ target: { key: 'c' } })
    await clock.advance(100)
    expect([whole.state, part.state, other.state]).toEqual(['lost', 'lost', 'held'])
    expect(part.signal.reason).toMatchObject({ code: 'lost', reason: 'revoked' })
    // The rest of it is released.
    expect(await Promise.all(['a', 'b', 'c', 'd', 'e'].map(claims))).toEqual([0, 0, 0, 1, 1])
  })

  it('shows that a wait has ended while the watch was interrupted', async () => {
    const { clock, inner, store, client } = open()
    await inner.grant({ holder: 'x', ttl: Infinity, claims: [{ key: 'k' }] })
    const failed = caught(client.hold([{ key: 'k' }]))
    await clock.settle()
    store.interrupt()
    const { claims } = await inner.read({ key: 'k' })
    await inner.revoke({ target: { key: 'k', token: claims[1]!.token } })
    await clock.advance(100)
    expect(await failed).toMatchObject({ code: 'lost', reason: 'revoked' })
  })

  it('leaves a wait alone that is still in the queue', async () => {
    const { clock, inner, store, client } = open()
    const rival = await inner.grant({ holder: 'x', ttl: Infinity, claims: [{ key: 'k' }] })
    let held = false
    const waiting = client.hold([{ key: 'k' }, { key: 'l' }]).then((hold) => {
      held = true
      return hold
    })
    await clock.settle()
    store.interrupt()
    await clock.advance(100)
    expect(held).toBe(false)
    if (rival.outcome === 'granted') await inner.revoke({ target: { lease: rival.lease } })
    await clock.settle()
    expect((await waiting).held).toBe(true)
  })
})

describe('a notice about a claim before its answer', () => {
  it.each([true, false])('counts when the answer arrives: its turn (%s)', async (inProcess) => {
    const { clock, inner, store, client } = open(inProcess)
    const rival = await inner.grant({ holder: 'x', ttl: Infinity, claims: [{ key: 'k' }] })
    await client.hold([{ key: 'other' }])
    await clock.settle()
    store.fault = (call) => (call === 'claim' ? { back: 100 } : undefined)
    const waiting = client.hold([{ key: 'k' }])
    await clock.advance(50)
    if (rival.outcome === 'granted') await inner.revoke({ target: { lease: rival.lease } })
    await clock.advance(50)
    expect((await waiting).held).toBe(true)
  })

  it.each([true, false])('counts when the answer arrives: its end (%s)', async (inProcess) => {
    const { clock, inner, store, client, claims } = open(inProcess)
    await client.hold([{ key: 'other' }])
    await clock.settle()
    store.fault = (call) => (call === 'claim' ? { back: 100 } : undefined)
    const failed = caught(client.hold([{ key: 'k' }, { key: 'l' }]))
    await clock.advance(50)
    await inner.revoke({ target: { key: 'k' }, by: 'ops', why: 'drain' })
    await clock.advance(50)
    expect(await failed).toMatchObject({ code: 'lost', by: 'ops', why: 'drain' })
    await clock.settle()
    expect([await claims('k'), await claims('l')]).toEqual([0, 0])
  })

  it('is forgotten when all calls are over that it could belong to', async () => {
    const { clock, inner, store, client, claims } = open()
    const other = await client.hold([{ key: 'other' }])
    await clock.settle()
    store.fault = (call) => (call === 'claim' ? { back: 100 } : undefined)
    const pending = client.hold([{ key: 'k' }])
    await clock.advance(50)
    // A claim on the same lease that this client did not request.
    await inner.claim({ lease: other.lease, claims: [{ key: 'stray' }] })
    store.interrupt()
    await clock.advance(50)
    expect((await pending).held).toBe(true)
    await clock.advance(1000)
    expect([await claims('k'), await claims('stray'), await claims('other')]).toEqual([1, 0, 1])
  })

  it('is removed at once if no call is pending', async () => {
    const { clock, inner, store, client, claims } = open()
    const other = await client.hold([{ key: 'other' }])
    await clock.settle()
    await inner.claim({ lease: other.lease, claims: [{ key: 'stray' }, { key: 'second' }] })
    store.interrupt()
    await clock.advance(100)
    expect([await claims('stray'), await claims('second')]).toEqual([0, 0])
    expect(other.held).toBe(true)
  })

  it('is removed after the last call that it could belong to, even if calls overlap', async () => {
    const { clock, inner, store, client, claims } = open()
    const other = await client.hold([{ key: 'other' }])
    await clock.settle()
    const delays = [300, 500]
    store.fault = (call) => (call === 'claim' ? { back: delays.shift()! } : undefined)
    const first = client.hold([{ key: 'a' }])
    await clock.advance(10)
    store.interrupt()
    await clock.advance(90)
    const second = client.hold([{ key: 'b' }])
    await clock.advance(10)
    await inner.claim({ lease: other.lease, claims: [{ key: 'stray' }] })
    store.interrupt()
    await clock.advance(200)
    expect((await first).held).toBe(true)
    expect(await claims('stray')).toBe(1)
    await clock.advance(400)
    expect((await second).held).toBe(true)
    expect([await claims('a'), await claims('b'), await claims('stray')]).toEqual([1, 1, 0])
  })

  it('needs no call to the store if it was taken already', async () => {
    const { clock, inner, store, client } = open()
    const other = await client.hold([{ key: 'other' }])
    await clock.settle()
    store.fault = (call) => (call === 'claim' ? { back: 100 } : undefined)
    const pending = client.hold([{ key: 'k' }])
    await clock.advance(10)
    await inner.claim({ lease: other.lease, claims: [{ key: 'stray' }] })
    await inner.revoke({ target: { key: 'stray' } })
    await clock.advance(1000)
    expect((await pending).held).toBe(true)
    expect(store.count('release')).toBe(0)
  })
})
