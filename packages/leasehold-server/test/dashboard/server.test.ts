import { readdirSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { FeedReader, Scene } from './scene.ts'
import { TestClients } from './test-clients.ts'

let scene: Scene
const readers: FeedReader[] = []

beforeEach(async () => {
  scene = await Scene.open()
})

afterEach(async () => {
  for (const reader of readers.splice(0)) reader.close()
  await scene.close()
})

function feed(headers: Record<string, string> = {}): FeedReader {
  const reader = new FeedReader(scene.url, headers)
  readers.push(reader)
  return reader
}

describe('the page', () => {
  const PAGE = fileURLToPath(new URL('../../dist/dashboard/page/', import.meta.url))
  const MOST = 120 * 1000

  it('is at most 120 kB in all, compressed as any browser takes it', () => {
    const files = readdirSync(PAGE).filter((name) => name.endsWith('.gz'))
    expect(files.length).toBe(4)
    const sum = files.reduce((total, name) => total + statSync(PAGE + name).size, 0)
    expect(sum).toBeLessThan(MOST)
  })

  it('may run only its own script, and cannot be framed', async () => {
    const response = await scene.ask('GET /')
    expect(response.status).toBe(200)
    const policy = response.headers.get('content-security-policy')!
    for (const part of [
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "connect-src 'self'",
      "frame-ancestors 'none'",
      "base-uri 'none'",
      "form-action 'none'",
    ]) {
      expect(policy.split('; ')).toContain(part)
    }
    expect(policy).not.toContain('unsafe')
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
    const text = await response.text()
    expect(text).not.toMatch(/<script(?![^>]* src=)|<style| style=| on\w+=|https?:/)
  })

  it('is requested each time, and the browser caches its parts', async () => {
    const page = await scene.ask('GET /')
    expect(page.headers.get('cache-control')).toBe('no-cache')
    const text = await page.text()
    const parts = [...text.matchAll(/(?:src|href)="(\/dashboard\/[^"]+)"/g)].map((it) => it[1]!)
    expect(parts).toHaveLength(3)
    for (const part of parts) {
      expect(part).toMatch(/-[\w-]{10}\.(js|css|svg)$/)
      const response = await scene.ask(`GET ${part}`)
      expect(response.status).toBe(200)
      expect(response.headers.get('cache-control')).toContain('immutable')
    }
  })

  it('is compressed for browsers that accept that, and plain for others', async () => {
    for (const encoding of ['br', 'gzip', 'identity']) {
      const response = await scene.ask('GET /', undefined, { 'accept-encoding': encoding })
      const expected = encoding === 'identity' ? null : encoding
      expect(response.headers.get('content-encoding')).toBe(expected)
      expect(await response.text()).toContain('<title>Leasehold</title>')
    }
  })
})

describe('signing in', () => {
  it('gives a session that no script and no other site can use, and no token', async () => {
    const token = await scene.token('ann', 'all:')
    const { cookie, set } = await scene.signIn(token)
    expect(set).toMatch(/; HttpOnly; SameSite=Strict; Max-Age=43200$/)
    expect(cookie).not.toContain(token.slice(7))
    const me = await scene.ask('GET /dashboard/me', undefined, { cookie })
    expect(await me.json()).toMatchObject({ name: 'ann', isKnown: true, isSignedIn: true })
    const secure = await scene.ask(
      'POST /dashboard/session',
      {},
      {
        authorization: `Bearer ${token}`,
        origin: scene.url.replace('http:', 'https:'),
      },
    )
    expect(secure.headers.get('set-cookie')).toMatch(/^__Host-.*; Secure$/)
  })

  it('is refused with an unknown token, and a changed session is invalid', async () => {
    const token = await scene.token('ann', 'all:')
    await scene.token('bob', 'read:')
    const wrong = { authorization: `Bearer ${token.slice(0, -1)}x` }
    expect((await scene.ask('POST /dashboard/session', {}, wrong)).status).toBe(401)
    const { cookie } = await scene.signIn(token)
    const end = /\.(\d+)\./.exec(cookie)![1]!
    for (const other of [
      cookie.replace('ann.', 'bob.'),
      cookie.replace(end, String(Number(end) + 1)),
      `${cookie.slice(0, -1)}${cookie.endsWith('A') ? 'B' : 'A'}`,
      cookie.replace(/=.*/, '='),
    ]) {
      const me = await scene.ask('GET /dashboard/me', undefined, { cookie: other })
      expect(await me.json()).toEqual({ signIn: expect.any(String) })
      const read = await scene.ask('GET /v1/keys', undefined, { cookie: other })
      expect(read.status).toBe(401)
    }
  })

  it('ends with the token, and a new token of the same name does not bring it back', async () => {
    const token = await scene.token('ann', 'all:')
    await scene.token('bob', 'read:')
    const { cookie } = await scene.signIn(token)
    const reader = feed({ cookie })
    await reader.next('history')
    const ended = reader.ended()
    await scene.server.access.tokens.revoke('ann', 'root')
    expect(await ended).toBe(4005)
    await scene.token('ann', 'all:')
    const response = await scene.ask('GET /v1/keys', undefined, { cookie })
    expect(response.status).toBe(401)
  })

  it('counts for pages of this server only', async () => {
    const { cookie } = await scene.signIn(await scene.token('ann', 'all:'))
    const foreign = { cookie, origin: 'https://evil.example' }
    expect((await scene.ask('GET /v1/keys', undefined, foreign)).status).toBe(401)
    const action = { action: 'revoke', lease: '0.1', why: 'x' }
    expect((await scene.ask('POST /dashboard/actions', action, foreign)).status).toBe(403)
    expect(await feed(foreign).ended()).toBe(403)
    expect((await scene.ask('GET /v1/keys', undefined, { cookie })).status).toBe(200)
  })
})

describe('the feed', () => {
  it("reports the server's figures every second, and the heartbeats of visible leases", async () => {
    const [seen, other] = [await scene.lease('ada', ['a']), await scene.lease('bo', ['b'])]
    const reader = feed()
    expect((await reader.next('history')).samples).toEqual([])
    reader.socket.send(JSON.stringify({ leases: [seen] }))
    const first = await reader.next('sample')
    expect(first.state).toMatchObject({ lapsed: [], demo: 'off' })
    for (const lease of [seen, other]) await scene.ask(`PUT /v1/leases/${lease}`)
    const { heartbeats } = await reader.next('heartbeats')
    expect(heartbeats.map(([lease]) => lease)).toEqual([seen])
    const { sample } = await reader.next('sample', (it) => it.sample.renewals > 0)
    expect(sample.renewals).toBeGreaterThan(0.5)
    const counted = await reader.next('sample', (it) => it.state.leases !== undefined)
    expect(counted.state.leases!.count).toBe(2)
    const late = await reader.next('sample', (it) => it.sample.expiryLag !== undefined)
    expect(late.sample.expiryLag).toBeLessThan(5000)
  })

  it('reports leases that have lapsed and not yet ended', async () => {
    await scene.store.grant({ holder: 'cy', ttl: 20, grace: 30_000, claims: [{ key: 'k' }] })
    const { state } = await feed().next('sample', (it) => it.state.lapsed.length > 0)
    expect(state.lapsed).toMatchObject([{ holder: 'cy' }])
  })

  it('sends the past to a later viewer', async () => {
    const first = feed()
    await first.next('sample')
    expect((await feed().next('history')).samples.length).toBeGreaterThan(0)
  })

  it('is for viewers that may read all keys, and for no other page', async () => {
    expect(await feed({ origin: 'https://evil.example' }).ended()).toBe(403)
    const some = await scene.token('ann', 'read,watch:jobs/')
    expect(await feed({ authorization: `Bearer ${some}` }).ended()).toBe(403)
    expect(await feed().ended()).toBe(401)
    const all = await scene.token('wall', 'read,watch:')
    await feed({ authorization: `Bearer ${all}` }).next('history')
  })

  it.each([
    'nonsense',
    '{"leases":5}',
    '{"leases":[5]}',
    JSON.stringify({ leases: Array(501).fill('1') }),
  ])('closes on invalid input: %.20s', async (text) => {
    const reader = feed()
    await reader.next('history')
    const ended = reader.ended()
    reader.socket.send(text)
    expect(await ended).toBe(4000)
  })
})

describe('actions', () => {
  const perform = (body: object, headers?: Record<string, string>) =>
    scene.ask('POST /dashboard/actions', body, headers)

  it('end a lease, with a reason that is reported and recorded, on a server without tokens', async () => {
    const lease = await scene.lease('ada', ['a'])
    expect((await perform({ action: 'revoke', lease, why: ' ' })).status).toBe(400)
    expect((await perform({ action: 'revoke', lease, why: 'stuck' })).status).toBe(200)
    const { end } = await scene.store.read({ lease })
    expect(end).toEqual({ reason: 'revoked', by: 'dashboard', why: 'stuck' })
    const done = {
      action: 'revoke',
      by: 'dashboard',
      target: { lease },
      why: 'stuck',
      outcome: 'done',
    }
    expect(scene.audit).toEqual([done])
    expect((await perform({ action: 'revoke', lease, why: 'again' })).status).toBe(410)
    expect(scene.audit.at(-1)).toMatchObject({ outcome: 'lease-ended' })
  })

  it('break a lease: it lives until the period is over, and no longer', async () => {
    const lease = await scene.lease('ada', ['a'])
    expect((await perform({ action: 'break', lease, after: 60_000, why: 'move' })).status).toBe(200)
    await scene.store.renew([lease])
    const reading = await scene.store.read({ lease })
    expect(reading.lease!.endOfLife).toBeLessThan(Infinity)
    expect(scene.audit).toMatchObject([{ action: 'break', target: { lease, after: 60_000 } }])
  })

  it('take a key away and leave its lease', async () => {
    const lease = await scene.lease('ada', ['a', 'b'])
    const next = await scene.lease('bo', ['a'])
    const { claims } = await scene.store.read({ key: 'a' })
    const { token } = claims[0]!
    expect((await perform({ action: 'take', key: 'a', token, why: 'stuck' })).status).toBe(200)
    expect((await scene.store.read({ key: 'a' })).claims.map((it) => it.lease)).toEqual([next])
    expect((await scene.store.read({ lease })).claims.map((it) => it.key)).toEqual(['b'])
    expect(scene.audit).toMatchObject([
      { action: 'revoke', target: { key: 'a', token }, why: 'stuck' },
    ])
  })

  it('drain an instance with any reason, even one that is cut within a character', async () => {
    await using world = await TestClients.open(scene, 'ada')
    const { registry } = world.leasehold
    await registry.register('embedder', { id: 'i-1' })
    for (const length of [176, 177, 178]) {
      const target = { service: 'embedder', instance: 'i-1' }
      await perform({ action: 'drain', ...target, why: `${'x'.repeat(length)}😀` })
      expect(await registry.find('embedder')).toEqual([])
      await perform({ action: 'return', ...target, why: 'done' })
    }
  })

  it('drain an instance: its own state does not bring it back, but returning it does', async () => {
    await using world = await TestClients.open(scene, 'agent')
    const { registry } = world.leasehold
    const instance = await registry.register('embedder', { id: 'i-1' })
    const drain = { action: 'drain', service: 'embedder', instance: 'i-1', why: 'upgrade' }
    expect((await perform(drain)).status).toBe(200)
    expect(await registry.find('embedder')).toEqual([])
    await instance.report('passing', 'I am well')
    const [found] = await registry.find('embedder', { status: 'any' })
    expect(found).toMatchObject({ status: 'critical', note: 'drained by dashboard: upgrade' })
    expect((await perform({ ...drain, action: 'return', why: 'done' })).status).toBe(200)
    expect(await registry.find('embedder')).toHaveLength(1)
    expect(scene.audit.map(({ action, why }) => [action, why])).toContainEqual(['drain', 'upgrade'])
    expect(scene.audit.map(({ action, why }) => [action, why])).toContainEqual(['return', 'done'])
    await perform(drain)
    await instance.release()
    expect((await scene.store.read({ prefix: 'health/' })).keys).toEqual([])
    expect((await perform(drain)).status).toBe(404)
  })

  it("need the right, and are recorded with the principal's name", async () => {
    const lease = await scene.lease('ada', ['jobs/1'])
    const other = await scene.lease('ada', ['mail/1'])
    const { cookie } = await scene.signIn(await scene.token('ops', 'read,watch:', 'admin:jobs/'))
    const { cookie: wall } = await scene.signIn(await scene.token('wall', 'read,watch:'))
    expect((await perform({ action: 'revoke', lease, why: 'x' }, { cookie: wall })).status).toBe(
      403,
    )
    expect((await perform({ action: 'revoke', lease: other, why: 'x' }, { cookie })).status).toBe(
      403,
    )
    expect((await perform({ action: 'revoke', lease, why: 'stuck' }, { cookie })).status).toBe(200)
    expect((await scene.store.read({ lease })).end).toMatchObject({ by: 'ops', why: 'stuck' })
    expect(scene.audit.map(({ by, outcome }) => [by, outcome])).toEqual([
      ['wall', 'forbidden'],
      ['ops', 'forbidden'],
      ['ops', 'done'],
    ])
  })

  it.each([
    {},
    { action: 'revoke', why: 'x' },
    { action: 'break', lease: '1.1', why: 'x' },
    { action: 'explode', lease: '1.1', why: 'x' },
    { action: 'revoke', lease: '1.1' },
  ])('are refused if they are invalid: %j', async (body) => {
    expect((await perform(body)).status).toBe(400)
  })
})

describe('the demo', () => {
  const setDemo = (method: string, headers?: Record<string, string>) =>
    scene.ask(`${method} /dashboard/demo`, undefined, headers)

  it('is all there, called demo, and gone with one call', async () => {
    const mine = await scene.lease('me', ['mine'])
    expect((await setDemo('PUT')).status).toBe(200)
    expect((await setDemo('PUT')).status).toBe(200)
    const { keys } = await scene.store.read({ prefix: '', limit: 10_000 })
    for (const prefix of ['services/demo-', 'election/demo-', 'pool/demo-', 'nodes/demo-']) {
      expect(
        keys.some(({ key }) => key.startsWith(prefix)),
        prefix,
      ).toBe(true)
    }
    for (const { key, claims } of keys) {
      if (key !== 'mine') expect(claims[0]!.holder).toMatch(/^demo:/)
    }
    expect((await setDemo('DELETE')).status).toBe(200)
    const left = await scene.store.read({ prefix: '', limit: 10_000 })
    expect(left.keys.map(({ key }) => key)).toEqual(['mine'])
    const { leases } = await scene.store.read({ leases: true, limit: 10_000 })
    expect(leases.map(({ id }) => id)).toEqual([mine])
  })

  it('removes what a server could not end', async () => {
    await scene.lease('demo:ada', ['pool/demo-gpu/definition'], { ttl: Infinity })
    await scene.lease('somebody', ['pool/demo-gpu/r/1'])
    await setDemo('DELETE')
    const { keys } = await scene.store.read({ prefix: '' })
    expect(keys.map(({ key }) => key)).toEqual(['pool/demo-gpu/r/1'])
  })

  it('leaves nothing behind when the server stops', async () => {
    await setDemo('PUT')
    await scene.server.close()
    const { keys } = await scene.store.read({ prefix: '' })
    expect(keys).toEqual([])
  })

  it('is for principals that may do everything', async () => {
    const { cookie } = await scene.signIn(await scene.token('wall', 'read,watch,claim:'))
    expect((await setDemo('PUT', { cookie })).status).toBe(403)
    expect((await setDemo('PUT', { origin: 'https://evil.example' })).status).toBe(403)
    expect((await setDemo('PUT')).status).toBe(401)
  })
})
