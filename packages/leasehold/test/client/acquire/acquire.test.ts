import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { Client, Conflict } from '../../../src/client/index.ts'
import { LeaseholdError } from '../../../src/port/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { FaultyStore } from '../faulty-store.ts'

function open(inProcess = false, limits = {}) {
  const clock = new TestClock()
  const inner = memoryStore({ clock, limits })
  const store = new FaultyStore(inner, clock, inProcess)
  const client = new Client(store, { clock, holder: 'me', callTimeout: 60_000 })
  const take = async (key: string, rest = {}) => {
    const claims = [{ key, ...rest }]
    const granted = await inner.grant({ holder: 'rival', ttl: 60_000, claims })
    return granted.outcome === 'granted' ? granted : { lease: '', token: 0 }
  }
  const leases = async () => (await inner.read({ leases: true })).leases.length
  return { clock, inner, store, client, take, leases }
}

const caught = (promise: Promise<unknown>) => promise.catch((error) => error)

describe('the claim ahead', () => {
  it('is reported with its keys, its start and end, and the number of waiters', async () => {
    const { clock, client, take } = open()
    const { token } = await take('k', { value: 'v' })
    const since = clock.now()
    await take('k')
    await clock.advance(1000)
    const conflict = await client.tryHold([{ key: 'free' }, { key: 'k' }])
    expect(conflict).toBeInstanceOf(Conflict)
    expect(conflict).toEqual({
      key: 'k',
      holder: 'rival',
      token,
      value: 'v',
      since,
      until: since + 60_000,
      ahead: 2,
    })
  })

  it('holds since its turn, not since its request', async () => {
    const { clock, inner, client, take } = open()
    const first = await take('k')
    await take('k')
    await clock.advance(1000)
    await inner.revoke({ target: { lease: first.lease } })
    const since = clock.now()
    await clock.advance(1000)
    expect(await client.tryHold([{ key: 'k' }])).toMatchObject({ since })
  })

  it('is named by a timeout, with its token and the other waiters', async () => {
    const { clock, client, take } = open()
    const { token } = await take('k')
    await take('k')
    const failed = caught(client.hold([{ key: 'k' }], { wait: '2s' }))
    await clock.advance(2000)
    expect(await failed).toMatchObject({
      code: 'timeout',
      message: expect.stringContaining(
        `waited 2s for "k", which was held by "rival" (token ${token}) with 1 more in the queue`,
      ),
    })
  })
})

it('a timeout before the holder is known names no holder', async () => {
  const { clock, client, store } = open()
  store.fault = () => ({ lost: 'request' })
  const failed = caught(client.hold([{ key: 'k' }], { wait: '2s' }))
  await clock.advance(2000)
  expect(await failed).toMatchObject({
    message: expect.stringMatching(/^waited 2s for "k", and the store has not answered yet: /),
  })
})

describe.each([true, false])('a try (a store in the process: %s)', (inProcess) => {
  it('does not count a wait, and leaves nothing behind', async () => {
    const { client, take, store, leases } = open(inProcess)
    await take('k')
    expect(await client.tryHold([{ key: 'k' }], { wait: 0 })).toBeInstanceOf(Conflict)
    expect(await client.tryHold([{ key: 'k' }], { wait: '1h' })).toBeInstanceOf(Conflict)
    expect(store.count('grant')).toBe(2)
    expect(await leases()).toBe(1)
  })
})

it.each([{ labels: { a: 'b' } }, { maxHold: '1m' } as const])(
  'a try with its own lease reports the claim ahead: %j',
  async (options) => {
    const { client, take, leases } = open()
    await take('k')
    const conflict = await client.tryHold([{ key: 'k' }], options)
    expect(conflict).toMatchObject({ holder: 'rival', key: 'k' })
    expect(await leases()).toBe(1)
  },
)

it('a hold that must not wait gets its answer, however slow, even with a signal', async () => {
  const { clock, client, store, take } = open()
  await take('taken')
  store.fault = (call) => (call === 'grant' ? { back: 100 } : undefined)
  const options = { wait: 0, signal: new AbortController().signal }
  const held = client.hold([{ key: 'k' }], options)
  await clock.advance(100)
  expect((await held).held).toBe(true)
})

it('a lease for one claim that arrives too late is ended, and no other is requested', async () => {
  const { clock, client, store, leases } = open()
  store.fault = (call) => (call === 'grant' ? { back: 100 } : undefined)
  const options = { wait: 50, labels: { a: 'b' } }
  expect(
    await Promise.all([caught(client.hold([{ key: 'k' }], options)), clock.advance(1000)]),
  ).toMatchObject([{ code: 'timeout' }, undefined])
  expect([await leases(), store.count('release')]).toEqual([0, 0])
})

it('a try that was aborted before it was answered leaves nothing behind', async () => {
  const { clock, client, store, inner } = open()
  await client.hold([{ key: 'other' }])
  store.fault = (call) => (call === 'claim' ? { back: 100 } : undefined)
  const controller = new AbortController()
  const failed = caught(client.tryHold([{ key: 'k' }], { signal: controller.signal }))
  await clock.advance(50)
  controller.abort('enough')
  expect(await failed).toMatchObject({ code: 'aborted', cause: 'enough' })
  await clock.advance(100)
  expect((await inner.read({ key: 'k' })).count).toBe(0)
})

describe('a lease that ends before it is answered', () => {
  it('is replaced by another three times, and then the attempt fails', async () => {
    const { clock, client, store, leases } = open(true)
    store.fault = (call) => (call === 'grant' ? { back: 1100 } : undefined)
    const failed = caught(client.hold([{ key: 'k' }], { ttl: '1s' }))
    await clock.advance(10_000)
    expect(await failed).toMatchObject({
      code: 'lost',
      reason: 'expired',
      message: expect.stringContaining('a lease of 1s'),
    })
    expect(store.count('grant')).toBe(4)
    expect(await leases()).toBe(0)
  })

  it('is replaced if the store refuses a claim because the lease has ended', async () => {
    const { clock, inner, client, store } = open()
    const first = await client.hold([{ key: 'a' }])
    await clock.settle()
    store.interrupt()
    await inner.revoke({ target: { lease: first.lease }, by: 'ops', why: 'drain' })
    const second = await client.hold([{ key: 'b' }])
    expect(second.held).toBe(true)
    expect(first.signal.reason).toMatchObject({ reason: 'revoked', by: 'ops', why: 'drain' })
  })

  it.each([
    ['broken', { reason: 'broken', by: 'ops', why: 'drain' }],
    ['lost without a word', { reason: 'expired' }],
  ])('reports to its holders how it ended: %s', async (how, end) => {
    const { clock, inner, client, store } = open()
    const first = await client.hold([{ key: 'a' }])
    await clock.settle()
    store.interrupt()
    if (how === 'broken') {
      const target = { lease: first.lease }
      await inner.revoke({ target, by: 'ops', why: 'drain', after: 10 })
      await clock.advance(20)
    } else {
      const error = new LeaseholdError('lease-not-found', 'no such lease')
      store.fault = (call) => (call === 'claim' ? { error } : undefined)
    }
    expect((await client.hold([{ key: 'b' }])).held).toBe(true)
    expect(first.signal.reason).toMatchObject({ code: 'lost', ...end })
  })

  it('is not requested again while a claim waits for its retry', async () => {
    const { clock, inner, client, store } = open()
    const first = await client.hold([{ key: 'a' }])
    await clock.settle()
    const error = new LeaseholdError('unknown-outcome', 'broken')
    store.fault = (call) => (call === 'claim' ? { error } : undefined)
    const waiting = client.hold([{ key: 'b' }])
    await clock.settle()
    await inner.revoke({ target: { lease: first.lease } })
    await clock.advance(100)
    expect((await waiting).held).toBe(true)
    expect([store.count('claim'), store.count('grant')]).toEqual([1, 2])
  })

  it('is not replaced for an attempt that has ended meanwhile', async () => {
    const { clock, client, store } = open(true)
    store.fault = (call) => (call === 'grant' ? { back: 1100 } : undefined)
    const failed = caught(client.hold([{ key: 'k' }], { ttl: '1s', wait: 500 }))
    await clock.advance(10_000)
    expect(await failed).toMatchObject({ code: 'timeout' })
    expect(store.count('grant')).toBe(1)
  })
})

describe('closing the client', () => {
  it('immediately ends a wait for a lease that the store has not granted yet', async () => {
    const { clock, client, store, leases } = open(true)
    store.fault = (call) => (call === 'grant' ? { back: 500 } : undefined)
    let error: unknown
    caught(client.hold([{ key: 'k' }], { wait: '1m' })).then((thrown) => {
      error = thrown
    })
    await clock.advance(100)
    const closed = client.close()
    await clock.settle()
    expect(error).toMatchObject({ code: 'closed' })
    await clock.advance(500)
    await closed
    expect(await leases()).toBe(0)
  })

  it('requests no other lease for a claim that is answered after it', async () => {
    const { clock, client, store } = open(true)
    await client.hold([{ key: 'other' }])
    store.fault = (call) => (call === 'claim' ? { back: 100 } : undefined)
    const failed = caught(client.hold([{ key: 'k' }]))
    await clock.advance(50)
    await client.close()
    await clock.advance(100)
    expect(await failed).toMatchObject({ code: 'closed' })
    expect(store.count('grant')).toBe(1)
  })

  it('requests no other lease for a claim that did not fit into the lease', async () => {
    const { clock, client, store } = open(true, { claimsPerLease: 1 })
    await client.hold([{ key: 'other' }])
    store.fault = (call) => (call === 'claim' ? { back: 100 } : undefined)
    const failed = caught(client.hold([{ key: 'k' }]))
    await clock.advance(50)
    await client.close()
    await clock.advance(100)
    expect(await failed).toMatchObject({ code: 'closed' })
    expect(store.count('grant')).toBe(1)
  })
})

describe('a turn', () => {
  it('does not arrive because the lease recovers', async () => {
    const { clock, client, store, take, inner } = open()
    const rival = await take('k')
    let held = false
    const waiting = client.hold([{ key: 'k' }], { ttl: '1s', grace: '30s' }).then((hold) => {
      held = true
      return hold
    })
    const recovered: string[] = []
    client.on('recovered', () => recovered.push('recovered'))
    await clock.settle()
    store.fault = (call) => (call === 'renew' ? { lost: 'request' } : undefined)
    await clock.advance(2000)
    store.fault = () => undefined
    await clock.advance(10_000)
    expect([recovered, held]).toEqual([['recovered'], false])
    await inner.revoke({ target: { lease: rival.lease } })
    await clock.settle()
    expect((await waiting).held).toBe(true)
  })

  it('is bounded by maxHold at the store too, which says why', async () => {
    const { clock, client, inner, store } = open()
    const hold = await client.hold([{ key: 'k' }], { ttl: '10s', maxHold: '1m' })
    await clock.settle()
    const { lease } = await inner.read({ lease: hold.lease })
    expect(lease!.endOfLife - clock.now()).toBe(60_000)
    // Another process keeps the lease, and its holder is unreachable.
    store.freeze()
    for (let n = 0; n < 12; n++) {
      await inner.renew([hold.lease])
      await clock.advance(5000)
    }
    const [tenure] = (await inner.read({ history: 'k' })).tenures
    expect(tenure!.end).toMatchObject({ reason: 'broken', by: 'me', why: 'maxHold' })
  })
})

describe('a limit', () => {
  it('of claims on a lease does not affect an attempt that has ended meanwhile', async () => {
    const { clock, client, store } = open(false, { claimsPerLease: 1 })
    await client.hold([{ key: 'other' }])
    store.fault = (call) => (call === 'claim' ? { back: 100 } : undefined)
    const failed = caught(client.hold([{ key: 'k' }], { wait: 50 }))
    await clock.advance(1000)
    expect(await failed).toMatchObject({ code: 'timeout' })
    expect([store.count('grant'), store.count('claim')]).toEqual([1, 1])
  })

  it('of claims on a key is the same under every lease, so the attempt fails', async () => {
    for (const options of [{}, { labels: { a: 'b' } }]) {
      const { client, store, leases, take } = open(false, { claimsPerKey: 1 })
      await take('k')
      await client.hold([{ key: 'other' }])
      const failed = await caught(client.hold([{ key: 'k' }], options))
      expect(failed).toMatchObject({ code: 'limit-exceeded' })
      expect(store.count('grant')).toBe(2)
      expect(await leases()).toBe(2)
    }
  })
})

describe('a signal', () => {
  it('is not listened to any more when the wait is over', async () => {
    const { clock, client, take, inner } = open()
    const { signal } = new AbortController()
    const listeners = () => getEventListeners(signal, 'abort').length
    const rival = await take('k')
    const waiting = client.hold([{ key: 'k' }], { signal })
    await clock.advance(100)
    expect(listeners()).toBe(1)
    await inner.revoke({ target: { lease: rival.lease } })
    await waiting
    expect(listeners()).toBe(0)
  })

  it('that is aborted before a slow store has answered ends the wait', async () => {
    const { clock, client, store, inner, take } = open(true)
    await client.hold([{ key: 'other' }])
    await take('k')
    store.fault = (call) => (call === 'claim' ? { back: 100 } : undefined)
    const controller = new AbortController()
    const failed = caught(client.hold([{ key: 'k' }], { signal: controller.signal }))
    await clock.advance(50)
    controller.abort('enough')
    await clock.advance(50)
    expect(await failed).toMatchObject({ code: 'aborted', cause: 'enough' })
    await clock.settle()
    expect((await inner.read({ key: 'k' })).count).toBe(1)
  })

  it('that is invalid is refused', async () => {
    const { client } = open()
    for (const signal of [null, 'stop', {}]) {
      await expect(client.hold([{ key: 'k' }], { signal: signal as never })).rejects.toMatchObject({
        code: 'invalid-argument',
      })
    }
  })
})

describe('a grant that is answered after its caller got an unknown outcome', () => {
  it.each(['granted', 'busy', 'refused'])('is no matter for the next: %s', async (how) => {
    const { clock, inner, store, client, take, leases } = open()
    await take('taken')
    const grant = store.grant.bind(store)
    let sends = 0
    store.grant = (request) => {
      if (request.request !== store.requests[0] && store.requests.length > 0) {
        store.fault = (call) => (call === 'grant' ? { back: 5000 } : undefined)
        return grant(request)
      }
      const error = new LeaseholdError('unknown-outcome', 'broken')
      const refusal = new LeaseholdError('invalid-argument', 'no')
      store.fault = (call) => {
        if (call !== 'grant') return undefined
        if (++sends <= 3) return { error }
        return how === 'refused' ? { error: refusal } : undefined
      }
      return grant(request)
    }
    const first = caught(client.tryHold([{ key: how === 'busy' ? 'taken' : 'k' }]))
    await clock.advance(160)
    expect(await first).toMatchObject({ code: 'unknown-outcome' })
    const second = client.hold([{ key: 'other' }])
    await clock.advance(1000)
    expect(sends).toBe(4)
    await clock.advance(5000)
    const held = await second
    expect(held.held).toBe(true)
    expect((await inner.read({ key: 'k' })).count).toBe(0)
    expect(await leases()).toBe(2)
  })
})
