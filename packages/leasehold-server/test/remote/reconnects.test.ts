import { Leasehold } from 'leasehold'
import { memoryStore } from 'leasehold/memory'
import type { Granted, LeaseStore, Notice } from 'leasehold/port'
import { type RemoteStoreOptions, remoteStore } from 'leasehold/remote'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createServer, type LeaseServer } from '../../src/index.ts'
import { Wire } from './wire.ts'

let inner: LeaseStore
let server: LeaseServer
let wire: Wire
const stores: LeaseStore[] = []

beforeEach(async () => {
  inner = memoryStore()
  server = await createServer({ store: inner, port: 0 })
  wire = await new Wire(server.url).start()
})

afterEach(async () => {
  await Promise.all(stores.splice(0).map((store) => store.close()))
  wire.close()
  await server.close()
  await inner.close()
})

async function open(options: RemoteStoreOptions = {}): Promise<LeaseStore> {
  const store = await remoteStore(wire.url, options)
  stores.push(store)
  return store
}

async function grant(store: LeaseStore, key?: string, request?: string): Promise<Granted> {
  const claims = key === undefined ? undefined : [{ key }]
  const answer = await store.grant({ holder: 'a', ttl: 60_000, claims, request })
  if (answer.outcome !== 'granted') throw new Error('not granted')
  return answer
}

function listen(store: LeaseStore, target: { prefix: string } | { lease: string }): Notice[] {
  const heard: Notice[] = []
  store.watch(target, (notice) => heard.push(notice))
  return heard
}

const types = (heard: readonly Notice[]) => heard.map(({ type }) => type)

describe('when the stream breaks', () => {
  it('a call with a request id is sent again, and finds its own first answer', async () => {
    const store = await open()
    wire.deaf = true
    const answer = grant(store, 'k', 'once')
    // It was carried out, and the answer lost.
    await vi.waitFor(async () => expect((await inner.read({ key: 'k' })).count).toBe(1))
    wire.deaf = false
    wire.cut()
    const { token } = await answer
    const { claims } = await inner.read({ key: 'k' })
    expect(claims.map((claim) => claim.token)).toEqual([token])
    expect(wire.connections).toBe(2)
  })

  it('a call without one has an unknown outcome, and is not sent again', async () => {
    const store = await open()
    const { lease } = await grant(store)
    wire.deaf = true
    const call = store.claim({ lease, claims: [{ key: 'k' }] })
    const failed = expect(call).rejects.toMatchObject({ code: 'unknown-outcome' })
    await vi.waitFor(async () => expect((await inner.read({ key: 'k' })).count).toBe(1))
    wire.deaf = false
    wire.cut()
    await failed
    await store.read({ key: 'k' })
    expect((await inner.read({ key: 'k' })).count).toBe(1)
  })

  it('a renewal and a reading are sent again', async () => {
    const store = await open()
    const { lease } = await grant(store)
    wire.deaf = true
    const before = server.stats.requests
    const both = Promise.all([store.renew([lease]), store.read({ lease })])
    await vi.waitFor(() => expect(server.stats.requests).toBe(before + 2))
    wire.deaf = false
    wire.cut()
    const [renewed, reading] = await both
    expect(renewed).toEqual({ lost: [], capped: [] })
    expect(reading.lease?.id).toBe(lease)
  })

  it('a call that is not answered in time is unknown, and does not hang', async () => {
    const store = await open({ timeout: 100 })
    wire.deaf = true
    const call = store.read({ key: 'k' })
    await expect(call).rejects.toMatchObject({ code: 'unknown-outcome' })
  })

  it("a prefix's watch continues after the last revision, and misses nothing", async () => {
    const store = await open()
    const heard = listen(store, { prefix: 'k/' })
    await grant(store, 'k/1')
    await vi.waitFor(() => expect(types(heard)).toEqual(['watching', 'events']))
    wire.cut()
    // While no client was connected.
    await inner.grant({ holder: 'b', ttl: 60_000, claims: [{ key: 'k/2' }] })
    await grant(store, 'k/3', 'third')
    await vi.waitFor(() => {
      const events = heard.flatMap((notice) => (notice.type === 'events' ? notice.events : []))
      expect(events.map(({ type, key }) => `${type} ${key}`)).toEqual([
        ...['claimed k/1', 'held k/1', 'claimed k/2', 'held k/2', 'claimed k/3', 'held k/3'],
      ])
    })
    expect(types(heard).filter((type) => type === 'watching')).toHaveLength(1)
  })

  it("a prefix's watch is interrupted if no server is reachable in time", async () => {
    const store = await open({ timeout: 200 })
    const heard = listen(store, { prefix: '' })
    await vi.waitFor(() => expect(types(heard)).toEqual(['watching']))
    wire.close()
    await vi.waitFor(() => expect(types(heard)).toEqual(['watching', 'interrupted']), 5000)
  })

  it("a lease's watch is interrupted at once", async () => {
    const store = await open()
    const { lease } = await grant(store, 'k')
    const heard = listen(store, { lease })
    await vi.waitFor(() => expect(types(heard)).toEqual(['standing']))
    wire.cut()
    await vi.waitFor(() => expect(types(heard)).toEqual(['standing', 'interrupted']))
  })

  it('a client keeps its lock, and a waiter its place', async () => {
    const holder = await Leasehold.open(wire.url, { holder: 'a' })
    const waiter = await Leasehold.open(wire.url, { holder: 'b' })
    const lock = await holder.lock('k', { ttl: '10s' })
    const { token } = lock
    const next = waiter.lock('k', { ttl: '10s' })
    await vi.waitFor(async () => expect((await inner.read({ key: 'k' })).count).toBe(2))
    wire.cut()
    await lock.renew()
    expect([lock.state, lock.token]).toEqual(['held', token])
    await lock.release()
    expect((await next).token).toBeGreaterThan(token)
    await Promise.all([holder.close(), waiter.close()])
  })
})

describe('a lease that is tied to its connection', () => {
  it('ends when the connection breaks, and says why', async () => {
    const { lease } = await grant(await open({ tied: true }), 'k')
    wire.cut()
    await vi.waitFor(async () => expect((await inner.read({ key: 'k' })).count).toBe(0))
    const { end } = await inner.read({ lease })
    expect(end).toMatchObject({ reason: 'revoked', why: expect.stringMatching(/connection/) })
  })

  it('survives if the client returns within its linger, and is still tied', async () => {
    const store = await open({ tied: { linger: '20s' } })
    const { lease } = await grant(store, 'k')
    wire.cut()
    expect(await store.renew([lease])).toEqual({ lost: [], capped: [] })
    expect(wire.connections).toBe(2)
    // The server does not wait for a client that said goodbye.
    await store.close()
    await vi.waitFor(async () => expect((await inner.read({ key: 'k' })).count).toBe(0))
  })

  it('ends when its linger is over', async () => {
    const store = await open({ tied: { linger: 50 } })
    await grant(store, 'k')
    wire.close()
    await vi.waitFor(async () => expect((await inner.read({ key: 'k' })).count).toBe(0))
  })

  it('is tied again to a restarted server', async () => {
    const store = await open({ tied: true })
    const { lease } = await grant(store, 'k')
    const port = Number(new URL(server.url).port)
    await server.close()
    expect((await inner.read({ lease })).lease?.id).toBe(lease)
    server = await createServer({ store: inner, port })
    expect(await store.renew([lease])).toEqual({ lost: [], capped: [] })
    wire.cut()
    await vi.waitFor(async () => expect((await inner.read({ key: 'k' })).count).toBe(0))
  })

  it('ends if it was granted while its client left', async () => {
    const store = await open({ tied: true, timeout: 300 })
    const { grant: carriedOut } = inner
    let go = () => {}
    const held = new Promise<void>((resolve) => {
      go = resolve
    })
    inner.grant = async (request) => {
      await held
      return carriedOut.call(inner, request)
    }
    const call = expect(grant(store, 'k')).rejects.toMatchObject({ code: 'unknown-outcome' })
    await vi.waitFor(() => expect(server.stats.requests).toBe(1))
    wire.close()
    await call
    await vi.waitFor(() => expect(server.stats.connections).toBe(0))
    go()
    const { revision } = await inner.read({ key: 'k' })
    await vi.waitFor(async () =>
      expect((await inner.read({ key: 'k' })).revision).toBeGreaterThan(revision + 1),
    )
    expect((await inner.read({ key: 'k' })).count).toBe(0)
  })

  it('is separate: a lease that is not tied outlives its connection', async () => {
    const { lease } = await grant(await open(), 'k')
    wire.close()
    await vi.waitFor(() => expect(server.stats.connections).toBe(0))
    expect((await inner.read({ lease })).lease?.id).toBe(lease)
  })
})

describe('fifty waiters, through the server', () => {
  it('are served in order, and none of them sends a request twice', async () => {
    const first = await Leasehold.open(server.url, { holder: 'first' })
    const held = await first.lock('k', { ttl: '60s' })
    const clients: Leasehold[] = []
    const order: number[] = []
    const served: Promise<void>[] = []
    for (let number = 0; number < 50; number++) {
      const client = await Leasehold.open(server.url, { holder: `w${number}` })
      clients.push(client)
      served.push(
        client.withLock('k', { ttl: '60s' }, () => {
          order.push(number)
        }),
      )
      const count = number + 2
      await vi.waitFor(async () => expect((await inner.read({ key: 'k' })).count).toBe(count))
    }
    const before = server.stats.requests
    await held.release()
    await Promise.all(served)
    expect(order).toEqual(Array.from({ length: 50 }, (_, number) => number))
    // Each of the fifty-one released once, and there were no other requests.
    expect(server.stats.requests - before).toBeLessThanOrEqual(51 + 5)
    await Promise.all([first, ...clients].map((client) => client.close()))
  })
})
