import { request } from 'node:http'
import { memoryStore } from 'leasehold/memory'
import { LeaseholdError, systemRandom } from 'leasehold/port'
import { pino } from 'pino'
import { afterEach, describe, expect, it } from 'vitest'
import { parseRight, type Quota } from '../../src/access/index.ts'
import { HttpApi } from '../../src/http/http-api.ts'
import { DEFAULT_HTTP } from '../../src/http/options.ts'
import type { ServerOptions } from '../../src/index.ts'
import { open as openAccess } from '../access/scene.ts'
import { changedStore, Gate } from '../setup/changed-store.ts'
import { Scene, until } from './scene.ts'

const opened: Scene[] = []
afterEach(async () => {
  for (const scene of opened.splice(0)) await scene.close()
})

async function open(options: Partial<ServerOptions> = {}): Promise<Scene> {
  const scene = await Scene.open(options)
  opened.push(scene)
  return scene
}

/** A store that counts the open watches on prefixes that start like this. */
function countingWatches(start = '') {
  const inner = memoryStore()
  let watches = 0
  const store = changedStore(inner, {
    watch: (target, observer) => {
      const watch = inner.watch(target, observer)
      if ('prefix' in target && !target.prefix.startsWith(start)) return watch
      watches++
      return {
        close: () => {
          watches--
          watch.close()
        },
      }
    },
  })
  return { store, watches: () => watches }
}

async function withQuota(scene: Scene, quota: Quota) {
  const rights = [parseRight('all:')]
  const token = await scene.server.access.tokens.create({ name: 'ann', rights, quota })
  return { authorization: `Bearer ${token}` }
}

describe('the HTTP API', () => {
  it('counts requests, and answers with a problem', async () => {
    const scene = await open()
    const { httpStats } = scene.server
    await scene.ask('POST /v1/locks/k')
    await scene.ask('POST /v1/locks/k')
    await until(() => httpStats.waiting === 0)
    expect(httpStats).toEqual({ requests: 2, problems: 1, waiting: 0, streams: 0, dropped: 0 })
  })

  it('forbids caching of answers and guessing of their type', async () => {
    const scene = await open()
    for (const what of ['GET /v1/keys', 'GET /v1/leases/9.9']) {
      const { headers } = await scene.ask(what)
      expect(headers.get('cache-control')).toBe('no-store')
      expect(headers.get('x-content-type-options')).toBe('nosniff')
    }
  })

  it('ends each answer with a newline', async () => {
    const scene = await open()
    const response = await fetch(`${scene.server.url}/v1/keys`)
    expect(await response.text()).toMatch(/}\n$/)
  })

  it('logs its own failures, and nothing else', async () => {
    const lines: unknown[] = []
    const write = (line: string) => void lines.push(JSON.parse(line))
    let fault: Error = new LeaseholdError('closed', 'x')
    const store = changedStore(memoryStore(), { grant: () => Promise.reject(fault) })
    const scene = await open({ store, logger: pino({ level: 'error' }, { write }) })
    await scene.ask('GET /v1/leases/9.9')
    expect((await scene.ask('POST /v1/locks/k')).status).toBe(503)
    expect(lines).toEqual([])
    fault = new Error('odd')
    expect((await scene.ask('POST /v1/locks/k')).status).toBe(503)
    fault = new LeaseholdError('storage-damaged', 'torn')
    expect((await scene.ask('POST /v1/locks/k')).status).toBe(500)
    expect(lines).toMatchObject([
      { method: 'POST', err: { message: 'odd' } },
      { method: 'POST', err: { message: 'torn' } },
    ])
  })

  it('says where to put a value that it does not read from a body', async () => {
    const scene = await open()
    const { body } = await scene.ask('PUT /v1/leases/1.1', { ttl: '5s' })
    expect(body.detail).toMatch(/PUT \/v1\/leases\/{lease} takes no body: use the query$/)
  })

  it('has no method that is not described', async () => {
    const scene = await open()
    const response = await fetch(`${scene.server.url}/v1/keys`, { method: 'HEAD' })
    expect(response.status).toBe(404)
  })

  it('leaves nothing open at the store when a request is answered', async () => {
    const { store, watches } = countingWatches()
    const scene = await open({ store })
    const before = watches()
    await scene.ask('POST /v1/services/s?id=a', {})
    await scene.ask('GET /v1/services/s')
    await scene.ask('GET /v1/services')
    await scene.ask('PUT /v1/pools/gpu', { resources: [{ name: 'g' }] })
    await scene.ask('POST /v1/sessions/main', { user: 'ada', data: 1 })
    await scene.ask('POST /v1/locks/k')
    await scene.ask('POST /v1/locks/k?wait=10ms')
    expect(watches()).toBe(before)
  })

  it('answers a page of another origin that only reads', async () => {
    const scene = await open()
    const origin = 'http://evil.example'
    expect((await scene.ask('GET /v1/keys', undefined, { origin })).status).toBe(200)
  })
})

describe('bytes that are sent', () => {
  it('are limited by the quota, and a refusal says when to retry', async () => {
    const scene = await open()
    const headers = await withQuota(scene, { bytesPerSecond: 100 })
    const body = { ttl: '30s', holder: 'x'.repeat(300) }
    const { status, body: said } = await scene.ask('POST /v1/leases', body, headers)
    expect([status, said.code]).toEqual([429, 'limit-exceeded'])
    expect(said.detail).toMatch(/100 bytes per second: ask again in \d+ ms/)
    expect((await scene.store.read({ leases: true })).leases).toHaveLength(1)
  })

  it('count as the maximum if their number is not given', async () => {
    const scene = await open({ http: { bodyBytes: 5000 } })
    const headers = await withQuota(scene, { bytesPerSecond: 1000 })
    const send = (more: Record<string, string>, text: string) =>
      new Promise((resolve, reject) => {
        const url = `${scene.server.url}/v1/leases`
        const all = { ...headers, 'content-type': 'application/json', ...more }
        const sent = request(url, { method: 'POST', headers: all }, (response) => {
          response.resume()
          resolve(response.statusCode)
        })
        sent.on('error', reject)
        sent.end(text)
      })
    const text = '{"ttl":"30s"}'
    expect(await send({ 'content-length': String(text.length) }, text)).toBe(201)
    expect(await send({ 'transfer-encoding': 'chunked' }, text)).toBe(429)
  })
})

/** A store whose grants wait for a gate. */
function slowGrants() {
  const gate = new Gate()
  const inner = memoryStore()
  let asked = false
  const store = changedStore(inner, {
    grant: async (wanted) => {
      asked = true
      await gate.opened
      return inner.grant(wanted)
    },
  })
  return { gate, inner, store, isAsked: () => asked }
}

describe('a server that stops', () => {
  it('answers pending requests, and starts no more', async () => {
    const { gate, inner, store, isAsked } = slowGrants()
    const scene = await Scene.open({ store })
    const underWay = scene.ask('POST /v1/locks/k')
    await until(isAsked)
    let isClosed = false
    const closing = scene.server.close().then(() => {
      isClosed = true
    })
    const late = await scene.ask('POST /v1/locks/other')
    expect(late).toMatchObject({ status: 503, body: { code: 'closed', outcome: 'refused' } })
    expect(isClosed).toBe(false)
    gate.open()
    expect((await underWay).status).toBe(201)
    await closing
    await inner.close()
  })

  it('does not start to wait for a lock', async () => {
    const { gate, inner, store, isAsked } = slowGrants()
    await inner.grant({ holder: 'h', ttl: 60_000, claims: [{ key: 'k' }] })
    const scene = await Scene.open({ store })
    const waiting = scene.ask('POST /v1/locks/k?wait=20s&ttl=1h')
    await until(isAsked)
    const closing = scene.server.close()
    gate.open()
    expect(await waiting).toMatchObject({ status: 503, body: { code: 'closed' } })
    await closing
    expect((await inner.read({ key: 'k' })).count).toBe(1)
    await inner.close()
  })

  it('does not wait for requests that take too long', async () => {
    const { inner, store, isAsked } = slowGrants()
    const scene = await Scene.open({ store, http: { drain: 20 } })
    const underWay = scene.ask('POST /v1/locks/k').catch(() => 'cut off')
    await until(isAsked)
    await scene.server.close()
    expect(await underWay).toBe('cut off')
    await inner.close()
  })
})

describe('a server that stops, and the clock', () => {
  it('keeps the process running while it waits for pending requests, and no longer', async () => {
    const { access } = await openAccess()
    const timers: { time: number; keepsAlive: boolean | undefined; isOver: boolean }[] = []
    const clock = {
      ...{ now: () => 7, asleep: () => 0, defer: () => {} },
      timer: (time: number, _run: () => void, keepsAlive?: boolean) => {
        const timer = { time, keepsAlive, isOver: false }
        timers.push(timer)
        return { cancel: () => void Object.assign(timer, { isOver: true }) }
      },
    }
    const options = { ...DEFAULT_HTTP, drain: 5000 }
    const log = pino({ level: 'silent' })
    await new HttpApi({ access, clock, random: systemRandom, log, options }).close()
    expect(timers).toEqual([{ time: 5007, keepsAlive: true, isOver: true }])
  })
})

describe('the state of a principal between requests', () => {
  const POOL = { resources: [{ name: 'g' }] }

  it('ends with its token, and another of the same name has its own', async () => {
    const scene = await open()
    await scene.ask('PUT /v1/pools/gpu', POOL)
    await scene.token('root', 'all:')
    const as = async () => ({ authorization: `Bearer ${await scene.token('ann', 'all:')}` })
    const first = await as()
    const held = await scene.ask('POST /v1/pools/gpu/permits?tenant=t', undefined, first)
    expect(held.status).toBe(201)
    await scene.server.access.tokens.revoke('ann', 'root')
    const second = await as()
    const path = `/v1/pools/gpu/permits/${held.body.lease}`
    expect((await scene.ask(`PUT ${path}`, undefined, first)).status).toBe(401)
    // The permit belongs to its holder, and was not released.
    expect((await scene.ask(`PUT ${path}`, undefined, second)).status).toBe(200)
    expect((await scene.ask(`DELETE ${path}`, undefined, second)).status).toBe(200)
    expect((await scene.store.read({ key: 'pool/gpu/r/g' })).count).toBe(0)
  })

  it('is closed when the server stops', async () => {
    const { store, watches } = countingWatches('pool/')
    const scene = await Scene.open({ store })
    await scene.ask('PUT /v1/pools/gpu', POOL)
    await scene.ask('GET /v1/pools/gpu')
    expect(watches()).toBe(1)
    await scene.server.close()
    expect(watches()).toBe(0)
    await store.close()
  })

  it('is closed to everybody by the first token, and opened again after the last', async () => {
    const { store, watches } = countingWatches('pool/')
    const scene = await open({ store })
    await scene.ask('PUT /v1/pools/gpu', POOL)
    await scene.ask('GET /v1/pools/gpu')
    expect(watches()).toBe(1)
    await scene.token('root', 'all:')
    await until(() => watches() === 0)
    await scene.server.access.tokens.revoke('root', 'root')
    expect((await scene.ask('GET /v1/pools/gpu')).status).toBe(200)
    expect(watches()).toBe(1)
  })
})
