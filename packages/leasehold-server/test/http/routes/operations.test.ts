import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { closed, Scene, until } from '../scene.ts'

let scene: Scene
beforeAll(async () => {
  scene = await Scene.open()
})
afterAll(() => scene.close())

async function grant(body: object = {}) {
  const answer = await scene.ask('POST /v1/leases', { holder: 'me', ttl: '30s', ...body })
  expect(answer.status).toBe(201)
  return answer.body as { lease: string; token: number; holds: boolean }
}

describe('leases', () => {
  it('are granted, with claims on several keys in one step', async () => {
    const labels = { job: 'x' }
    const claims = [{ key: 'g/1' }, { key: 'g/2', value: 'v' }]
    const { lease, token, holds } = await grant({ claims, labels, grace: 5000, maxLife: '1h' })
    expect(holds).toBe(true)
    const { body } = await scene.ask(`GET /v1/leases/${lease}`)
    expect(body.lease).toMatchObject({ holder: 'me', ttl: 30_000, grace: 5000, labels, claims: 2 })
    expect(body.claims.map((it: { token: number }) => it.token)).toEqual([token, token])
    const busy = await scene.ask('POST /v1/leases', { ttl: '30s', claims, ifFree: true })
    expect(busy).toMatchObject({ status: 409, body: { code: 'busy', holder: 'me' } })
  })

  it('are granted as requested, with durations as strings or numbers', async () => {
    const body = { ttl: '30000', grace: '5s', maxLife: 3_600_000 }
    const { lease } = (await scene.ask('POST /v1/leases', body)).body
    const read = (await scene.store.read({ lease })).lease!
    expect(read).toMatchObject({ holder: 'everybody', ttl: 30_000, grace: 5000 })
    expect(read.endOfLife - read.grantedAt).toBe(3_600_000)
    const plain = await grant()
    expect(plain).toMatchObject({ token: 0, holds: true, ahead: [] })
    expect(plain).not.toHaveProperty('outcome')
  })

  it('are read with the requested number of claims', async () => {
    const { lease } = await grant({ claims: [{ key: 'l/1' }, { key: 'l/2' }] })
    const { body } = await scene.ask(`GET /v1/leases/${lease}?limit=1`)
    expect([body.claims.length, body.lease.claims]).toEqual([1, 2])
    expect(Object.keys(body).sort()).toEqual(['claims', 'lease', 'revision'])
  })

  it('whose claim waits are granted again to a repeat, even if the claim was removed', async () => {
    await grant({ claims: [{ key: 'taken' }] })
    const once = { 'idempotency-key': 'queued' }
    const body = { ttl: '30s', claims: [{ key: 'taken' }] }
    const first = await scene.ask('POST /v1/leases', body, once)
    expect(first).toMatchObject({ status: 201, body: { holds: false } })
    await scene.ask(`DELETE /v1/keys/taken?token=${first.body.token}&why=x`)
    const again = await scene.ask('POST /v1/leases', body, once)
    expect(again).toMatchObject({ status: 201, body: first.body })
  })

  it('that never end have null as their end', async () => {
    const { lease } = await grant({ ttl: 'infinite' })
    const { body } = await scene.ask(`GET /v1/leases/${lease}`)
    expect([body.lease.ttl, body.lease.until]).toEqual([null, null])
    expect((await scene.ask(`PUT /v1/leases/${lease}`)).body).toEqual({ lease, remaining: null })
  })

  it('are renewed, one and many, and the lost are named with their reason', async () => {
    const [one, two] = [await grant(), await grant()]
    const kept = await scene.ask(`PUT /v1/leases/${one.lease}`)
    expect(kept).toMatchObject({ status: 200, body: { remaining: 30_000 } })
    await scene.ask(`DELETE /v1/leases/${two.lease}?by=ops&why=done`)
    const leases = [one.lease, two.lease, '9.999999']
    const { body } = await scene.ask('POST /v1/leases/renew', { leases })
    expect(body.capped).toEqual([])
    expect(body.lost).toEqual([
      { lease: two.lease, end: { reason: 'revoked', by: 'ops', why: 'done' } },
      { lease: '9.999999' },
    ])
    const lost = await scene.ask(`PUT /v1/leases/${two.lease}`)
    expect(lost).toMatchObject({ status: 410, body: { code: 'lease-ended', by: 'ops' } })
    expect(await scene.ask('PUT /v1/leases/9.999999')).toMatchObject({
      status: 404,
      body: { code: 'lease-not-found' },
    })
  })

  it('are listed in pages, each once', async () => {
    for (let at = 0; at < 5; at++) await grant()
    const seen: string[] = []
    for (let after = '', more = true; more; ) {
      const { body } = await scene.ask(`GET /v1/leases?limit=3${after}`)
      expect(body.leases.length).toBeLessThanOrEqual(3)
      seen.push(...body.leases.map((it: { id: string }) => it.id))
      more = body.more
      after = `&after=${seen.at(-1)}`
    }
    expect(new Set(seen).size).toBe(seen.length)
    expect(seen.length).toBeGreaterThanOrEqual(5)
  })

  it('are broken with a period that no renewal passes', async () => {
    const { lease } = await grant({ ttl: '1h' })
    const { body } = await scene.ask(`DELETE /v1/leases/${lease}?after=1m&by=ops&why=move`)
    expect(body).toMatchObject({ leases: 1 })
    const kept = await scene.ask(`PUT /v1/leases/${lease}`)
    expect(kept.body.remaining).toBeLessThanOrEqual(60_000)
  })

  it('end with the leases under them', async () => {
    const { lease: parent } = await grant()
    const child = await grant({ parent, claims: [{ key: 'child' }] })
    const { body } = await scene.ask(`DELETE /v1/leases/${parent}/children?why=x`)
    expect(body).toMatchObject({ leases: 1, claims: 1, more: false })
    expect((await scene.ask(`GET /v1/leases/${child.lease}`)).status).toBe(410)
    expect((await scene.ask(`GET /v1/leases/${parent}`)).status).toBe(200)
  })
})

describe('claims', () => {
  it('hold or stay in the queue, and are released by their token', async () => {
    const [one, two] = [await grant(), await grant()]
    const claims = [{ key: 'c/1' }]
    const first = await scene.ask(`POST /v1/leases/${one.lease}/claims`, { claims })
    expect(first).toMatchObject({ status: 201, body: { holds: true, ahead: [] } })
    const second = await scene.ask(`POST /v1/leases/${two.lease}/claims`, { claims })
    expect(second.body).toMatchObject({ holds: false, ahead: [{ key: 'c/1', count: 1 }] })
    const busy = await scene.ask(`POST /v1/leases/${two.lease}/claims`, { claims, ifFree: true })
    expect(busy.body).toMatchObject({ code: 'busy', token: first.body.token })
    const path = `/v1/leases/${one.lease}/claims?key=c/1`
    const wrong = await scene.ask(`DELETE ${path}&token=${second.body.token}`)
    expect(wrong).toMatchObject({ status: 404, body: { code: 'claim-not-found' } })
    const freed = await scene.ask(`DELETE ${path}&token=${first.body.token}`)
    expect(freed).toMatchObject({ status: 200, body: { revision: expect.any(Number) } })
    const { body } = await scene.ask('GET /v1/keys/c/1')
    expect(body).toMatchObject({ holders: 1, count: 1, claims: [{ token: second.body.token }] })
  })

  it('wait until they hold, and are removed when they did not in time', async () => {
    const [one, two] = [await grant({ claims: [{ key: 'w' }] }), await grant()]
    const path = `/v1/leases/${two.lease}/claims`
    const claims = [{ key: 'w' }]
    const late = await scene.ask(`POST ${path}?wait=20ms`, { claims })
    expect(late).toMatchObject({ status: 409, body: { code: 'timeout', holder: 'me' } })
    expect((await scene.store.read({ key: 'w' })).count).toBe(1)
    const waiting = scene.ask(`POST ${path}?wait=20s`, { claims })
    await scene.claims('w', 2)
    await scene.ask(`DELETE /v1/leases/${one.lease}?why=done`)
    expect(await waiting).toMatchObject({ status: 201, body: { holds: true, ahead: [] } })
  })

  it('are removed if the connection breaks, and their lease lives on', async () => {
    const [, two] = [await grant({ claims: [{ key: 'x' }] }), await grant()]
    const abort = new AbortController()
    const path = `POST /v1/leases/${two.lease}/claims?wait=20s`
    const asked = scene.ask(path, { claims: [{ key: 'x' }] }, {}, abort.signal).catch(() => {})
    await scene.claims('x', 2)
    abort.abort()
    await asked
    await scene.claims('x', 1)
    expect((await scene.ask(`GET /v1/leases/${two.lease}`)).status).toBe(200)
  })
})

describe('keys and values', () => {
  it('are read one by one and by prefix, in pages', async () => {
    const { lease, token } = await grant({ claims: [1, 2, 3].map((at) => ({ key: `p/${at}` })) })
    const value = await scene.ask(`PUT /v1/values/p/2?lease=${lease}&token=${token}`, {
      value: 'v',
    })
    expect(value.status).toBe(200)
    const one = await scene.ask('GET /v1/keys?prefix=p/&limit=2')
    expect(one.body).toMatchObject({ more: true, keys: [{ key: 'p/1' }, { key: 'p/2' }] })
    expect(one.body.keys[1].claims[0].value).toBe('v')
    const two = await scene.ask('GET /v1/keys?prefix=p/&limit=2&after=p/2')
    expect(two.body).toMatchObject({ more: false, keys: [{ key: 'p/3' }] })
    const none = await scene.ask(`PUT /v1/values/p/2?lease=${lease}&token=${token}`, {})
    expect(none.status).toBe(200)
    expect((await scene.ask('GET /v1/keys/p/2')).body.claims[0]).not.toHaveProperty('value')
  })

  it('are read up to a limit, and all of them without a prefix', async () => {
    for (let at = 0; at < 2; at++) await grant({ claims: [{ key: 'line/1' }] })
    const { body } = await scene.ask('GET /v1/keys/line/1?limit=1')
    expect([body.claims.length, body.count]).toEqual([1, 2])
    const all = (await scene.ask('GET /v1/keys')).body.keys.map((it: { key: string }) => it.key)
    expect(all).toEqual(expect.arrayContaining(['g/1', 'line/1']))
    expect((await scene.ask('DELETE /v1/keys?why=x')).status).toBe(400)
  })

  it('are taken from one claim, if its token is given', async () => {
    const [one, two] = [
      await grant({ claims: [{ key: 'one' }] }),
      await grant({ claims: [{ key: 'one' }] }),
    ]
    const { body } = await scene.ask(`DELETE /v1/keys/one?token=${one.token}&why=x`)
    expect(body).toMatchObject({ claims: 1 })
    expect((await scene.store.read({ key: 'one' })).claims).toMatchObject([{ token: two.token }])
  })

  it('are taken by force, and the history says by whom', async () => {
    await grant({ claims: [{ key: 'f/1' }, { key: 'f/2' }] })
    const one = await scene.ask('DELETE /v1/keys/f/1?by=ops&why=stuck')
    expect(one.body).toMatchObject({ claims: 1, leases: 0 })
    const all = await scene.ask('DELETE /v1/keys?prefix=f/&by=ops&why=stuck')
    expect(all.body).toMatchObject({ claims: 1, more: false })
    const { body } = await scene.ask('GET /v1/history/f/1')
    const end = { reason: 'revoked', by: 'ops', why: 'stuck' }
    expect(body.tenures).toMatchObject([{ holder: 'me', end }])
  })
})

describe('rights', () => {
  it('are decided by the token, over HTTP as everywhere', async () => {
    const own = await Scene.open()
    const [ada, ben] = [await own.token('ada', 'claim,read:a/'), await own.token('ben', 'all:b/')]
    const as = (token: string) => ({ authorization: `Bearer ${token}` })
    const held = await own.ask('POST /v1/locks/a/1', undefined, as(ada))
    expect(held).toMatchObject({ status: 201, body: { lease: expect.stringContaining('~') } })
    const { claims } = (await own.ask('GET /v1/keys/a/1', undefined, as(ada))).body
    const [{ lease, holder }] = claims
    expect([holder, lease]).toEqual(['ada', held.body.lease.split('~')[0]])
    for (const path of ['PUT /v1/locks/a/1', 'DELETE /v1/locks/a/1']) {
      const stolen = await own.ask(`${path}?lease=${lease}`, undefined, as(ben))
      expect(stolen).toMatchObject({ status: 403, body: { code: 'forbidden' } })
    }
    expect((await own.ask('GET /v1/keys/a/1', undefined, as(ben))).status).toBe(403)
    expect((await own.ask('POST /v1/locks/a/1', undefined, as(ben))).status).toBe(403)
    const kept = await own.ask(`PUT /v1/locks/a/1?lease=${held.body.lease}`, undefined, as(ada))
    expect(kept).toMatchObject({ status: 200, body: { token: held.body.token } })
    const freed = await own.ask(`DELETE /v1/locks/a/1?lease=${held.body.lease}`, undefined, as(ada))
    expect(freed.status).toBe(200)
    await own.close()
  })

  it('separate the requests of two callers with the same Idempotency-Key', async () => {
    const own = await Scene.open()
    const [ada, ben] = [await own.token('ada', 'all:x/'), await own.token('ben', 'all:x/')]
    const as = (token: string) => ({ authorization: `Bearer ${token}`, 'idempotency-key': '1' })
    expect((await own.ask('POST /v1/locks/x/1', undefined, as(ada))).status).toBe(201)
    expect((await own.ask('POST /v1/locks/x/1', undefined, as(ben))).status).toBe(409)
    await own.close()
  })

  it('end a wait when the token is revoked', async () => {
    const own = await Scene.open()
    const headers = { authorization: `Bearer ${await own.token('ada', 'all:x/')}` }
    await own.ask('POST /v1/locks/x/1', undefined, headers)
    const waiting = own.ask('POST /v1/locks/x/1?wait=20s', undefined, headers)
    await own.claims('x/1', 2)
    await own.server.access.tokens.revoke('ada', 'ops')
    expect(await waiting).toMatchObject({ status: 401, body: { code: 'unauthenticated' } })
    await own.close()
  })

  it('count waiting claims, and refuse one too many', async () => {
    const own = await Scene.open({ http: { waits: 1 } })
    await own.ask('POST /v1/locks/k')
    const sent = await own.begin('POST', '/v1/locks/k?wait=20s')
    const more = await own.ask('POST /v1/locks/k?wait=20s')
    expect(more).toMatchObject({ status: 429, body: { code: 'limit-exceeded' } })
    expect(more.headers.get('retry-after')).toBe('1')
    expect((await own.ask('POST /v1/locks/other')).status).toBe(201)
    const { lease } = (await own.ask('POST /v1/leases', { ttl: '30s' })).body
    const claims = [{ key: 'k' }]
    const third = await own.ask(`POST /v1/leases/${lease}/claims?wait=20s`, { claims })
    expect(third.status).toBe(429)
    await own.ask('PUT /v1/pools/gpu', { resources: [{ name: 'g' }] })
    const fourth = await own.ask('POST /v1/pools/gpu/permits?tenant=t&wait=20s')
    expect(fourth.status).toBe(429)
    await closed(sent)
    await own.claims('k', 1)
    await until(() => own.server.httpStats.waiting === 0)
    await own.close()
  })
})
