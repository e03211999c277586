import { type OutgoingHttpHeaders, request } from 'node:http'
import { Leasehold } from 'leasehold'
import { memoryStore } from 'leasehold/memory'
import type { LeaseStore, RevokeRequest } from 'leasehold/port'
import { remoteStore } from 'leasehold/remote'
import { conformance } from 'leasehold/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseRight } from '../../src/access/index.ts'
import { createServer, type LeaseServer } from '../../src/index.ts'
import { changedStore, Gate } from '../setup/changed-store.ts'
import { refused } from './scene.ts'

/** Servers and stores of one test, ended with it. */
const opened: { close(): Promise<void> }[] = []
afterAll(async () => {
  for (const it of opened.reverse()) await it.close()
})

/** A machine that is busy with something else takes its time. */
const PATIENT = { timeout: 30_000 }

async function serve(): Promise<LeaseServer> {
  const store = memoryStore()
  const server = await createServer({ store, port: 0 })
  opened.push(store, server)
  return server
}

async function connect(server: LeaseServer, token?: string): Promise<LeaseStore> {
  const store = await remoteStore(server.url, { accessToken: token, timeout: 2000 })
  opened.push(store)
  return store
}

const token = (server: LeaseServer, name: string, ...rights: string[]) =>
  server.access.tokens.create({ name, rights: rights.map(parseRight) })

describe('a stream with a token', { concurrent: true }, () => {
  let server: LeaseServer
  let all: string
  beforeAll(async () => {
    server = await serve()
    all = await token(server, 'all', 'all:')
  })
  const open = async () => {
    const store = await remoteStore(server.url, { accessToken: all })
    const revoke = store.revoke.bind(store)
    // Ending the leases of others needs a reason here.
    const reasoned = (request: RevokeRequest) =>
      revoke(isObject(request) ? { why: 'a test', ...request } : request)
    return { store: Object.defineProperty(store, 'revoke', { value: reasoned }), ttl: 2500 }
  }
  const exempt = {
    "watches: a lease's watch tells of a claim that is taken by force, and not of its own releases":
      'the server names the principal, and requires a reason',
  }
  // To the owner of the leases, a server with lease secrets is a store like any other.
  for (const { name, skip, run } of conformance({ open, shared: true, exempt })) {
    it.skipIf(skip)(name, run)
  }
})

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null
}

describe('a server with tokens', () => {
  it('refuses a client without a token or with a wrong one, and says why', async () => {
    const server = await serve()
    await token(server, 'ann', 'all:')
    await expect(remoteStore(server.url)).rejects.toThrowError(refused('unauthenticated'))
    await expect(remoteStore(server.url)).rejects.toThrowError(/requires an access token/)
    await expect(remoteStore(server.url, { accessToken: 'lh_ann_wrong' })).rejects.toThrowError(
      /unknown access token/,
    )
    await expect(Leasehold.open(server.url)).rejects.toThrowError(refused('unauthenticated'))
  })

  it('accepts the deprecated option token', async () => {
    const server = await serve()
    const accessToken = await token(server, 'ann', 'all:')
    const store = await remoteStore(server.url, { token: accessToken })
    const leasehold = await Leasehold.open(server.url, { token: accessToken })
    opened.push(store, leasehold)
    expect((await store.read({ prefix: 'a' })).keys).toEqual([])
    await using lock = await leasehold.lock('a')
    expect(lock.token).toBeGreaterThan(0)
  })

  it('disconnects the users of a revoked token, and fails their calls and watches', async () => {
    const server = await serve()
    const root = await connect(server, await token(server, 'root', 'all:'))
    const ann = await connect(server, await token(server, 'ann', 'claim,watch:jobs/'))
    const ended = new Promise((resolve) => {
      ann.watch({ prefix: 'jobs/' }, (notice) => {
        if (notice.type === 'interrupted') resolve(notice.error)
      })
    })
    await ann.grant({ holder: 'ann', ttl: 60_000, claims: [{ key: 'jobs/1' }] })
    await server.access.tokens.revoke('ann', 'root')
    expect(await ended).toMatchObject({ code: 'unauthenticated' })
    await expect(ann.read({ key: 'jobs/1' })).rejects.toThrowError(refused('unauthenticated'))
    expect((await root.read({ key: 'jobs/1' })).count).toBe(1)
  })

  it('does not report a call as refused that was pending when its token was revoked', async () => {
    const inner = memoryStore()
    const gate = new Gate()
    let asked = false
    const store = changedStore(inner, {
      grant: async (request) => {
        if (request.holder !== 'ann') return inner.grant(request)
        asked = true
        await gate.opened
        return inner.grant(request)
      },
    })
    const server = await createServer({ store, port: 0 })
    opened.push(inner, server)
    const ann = await connect(server, await token(server, 'ann', 'claim:'))
    const granted = ann.grant({ holder: 'ann', ttl: 60_000, claims: [{ key: 'k' }], request: 'r' })
    const outcome = granted.catch((error) => error)
    await expect.poll(() => asked).toBe(true)
    await server.access.tokens.revoke('ann', 'root')
    expect(await outcome).toMatchObject({ code: 'unknown-outcome' })
    gate.open()
    await expect.poll(async () => (await inner.read({ key: 'k' })).count).toBe(1)
  })

  it('lets a client hold, wait and hand over with no more than the right to claim', async () => {
    const server = await serve()
    const first = await token(server, 'first', 'claim:jobs/')
    const second = await token(server, 'second', 'claim:jobs/')
    const a = await Leasehold.open(server.url, { accessToken: first, holder: 'a' })
    const b = await Leasehold.open(server.url, { accessToken: second, holder: 'b' })
    opened.push(a, b)
    const held = await a.lock('jobs/1')
    const waiting = b.lock('jobs/1', { wait: '5s' })
    expect((await b.tryLock('jobs/1')).conflict?.holder).toBe('a')
    await expect(b.lock('other')).rejects.toThrowError(refused('forbidden'))
    await held.release()
    expect((await waiting).held).toBe(true)
  })

  it('does not end the lease of another principal with the connection of a client that ties it', async () => {
    const server = await serve()
    const ann = await connect(server, await token(server, 'ann', 'all:'))
    const eve = await remoteStore(server.url, {
      token: await token(server, 'eve', 'claim:'),
      tied: true,
    })
    const mine = await ann.grant({ holder: 'ann', ttl: 60_000, claims: [{ key: 'k' }] })
    const own = await eve.grant({ holder: 'eve', ttl: 60_000, claims: [{ key: 'e' }] })
    expect([mine.outcome, own.outcome]).toEqual(['granted', 'granted'])
    await eve.close()
    await expect.poll(async () => (await ann.read({ key: 'e' })).count).toBe(0)
    expect((await ann.read({ key: 'k' })).count).toBe(1)
  })

  it('refuses renewals for leases of others, and extends none of them', async () => {
    const server = await serve()
    const ann = await connect(server, await token(server, 'ann', 'claim,read:ann/'))
    const eve = await connect(server, await token(server, 'eve', 'claim:eve/'))
    const mine = await ann.grant({ holder: 'ann', ttl: 60_000, claims: [{ key: 'ann/1' }] })
    const brief = await ann.grant({ holder: 'ann', ttl: 1000, claims: [{ key: 'ann/2' }] })
    const own = await eve.grant({ holder: 'eve', ttl: 60_000, claims: [{ key: 'eve/1' }] })
    if (mine.outcome === 'busy' || brief.outcome === 'busy' || own.outcome === 'busy') throw own
    const guessed = `${brief.lease}~${'A'.repeat(22)}`
    let refusals = 0
    let isOver = false
    const storm = async () => {
      while (!isOver) {
        for (const lease of [brief.lease, guessed, mine.lease]) {
          // Together with one's own, too: a renewal is refused whole.
          const renewal = eve.renew([own.lease, lease])
          const refusal = await renewal.catch((error) => error)
          // An ended lease is lost, for her as for all others.
          if ('lost' in refusal) expect(refusal.lost).toMatchObject([{ lease: brief.lease }])
          else {
            expect(refusal).toMatchObject({ code: 'forbidden' })
            refusals++
          }
        }
      }
    }
    const storms = Promise.all(Array.from({ length: 20 }, storm))
    const ended = expect.poll(async () => (await ann.read({ key: 'ann/2' })).count, PATIENT).toBe(0)
    await Promise.race([ended, storms])
    expect(await ann.renew([mine.lease])).toEqual({ lost: [], capped: [] })
    isOver = true
    await storms
    expect(refusals).toBeGreaterThan(0)
    expect(await eve.renew([own.lease])).toEqual({ lost: [], capped: [] })
  })
})

describe('a server on a loopback address', () => {
  const call = (server: LeaseServer, host: string, headers: OutgoingHttpHeaders = {}) =>
    new Promise<number>((resolve, reject) => {
      const { hostname, port } = new URL(server.url)
      const path = headers.upgrade === undefined ? '/v1/keys/k' : '/v1/stream'
      const sent = request({ hostname, port, path, headers: { host, ...headers } })
      sent.on('response', (response) => resolve(response.resume().statusCode!))
      sent.on('upgrade', (response, socket) => {
        socket.destroy()
        resolve(response.statusCode!)
      })
      sent.on('error', reject).end()
    })

  it('does not answer a page that uses another name for this machine', async () => {
    const server = await serve()
    for (const host of ['localhost', 'LOCALHOST:7420', '127.0.0.1:7420', '[::1]:7420']) {
      expect(await call(server, host)).toBe(200)
    }
    expect(await call(server, 'evil.example:7420')).toBe(403)
    expect(await call(server, 'localhost.evil.example')).toBe(403)
    const stream = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' }
    const key = { 'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==' }
    expect(await call(server, 'localhost', { ...stream, ...key })).toBe(101)
    expect(await call(server, 'evil.example', { ...stream, ...key })).toBe(403)
  })

  it('answers to any name if it requires a token, because a page has none', async () => {
    const server = await serve()
    const authorization = `Bearer ${await token(server, 'ann', 'all:')}`
    expect(await call(server, 'leases.example', { authorization })).toBe(200)
    expect(await call(server, 'leases.example')).toBe(401)
  })
})
