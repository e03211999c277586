import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { closed, Scene } from './scene.ts'

let scene: Scene
beforeAll(async () => {
  scene = await Scene.open()
})
afterAll(() => scene.close())

async function take(key: string, query = 'ttl=30s&holder=me') {
  const { status, body } = await scene.ask(`POST /v1/locks/${key}?${query}`)
  expect([status, body]).toEqual([201, expect.objectContaining({ key: decodeURIComponent(key) })])
  return body as { key: string; lease: string; token: number; remaining: number }
}

describe('a lock over HTTP', () => {
  it('is taken, kept and released, with one lease and one token', async () => {
    const { lease, token, remaining } = await take('reports/2026-11')
    expect(remaining).toBe(30_000)
    const kept = await scene.ask(`PUT /v1/locks/reports/2026-11?lease=${lease}`)
    expect(kept).toMatchObject({ status: 200, body: { lease, token, remaining: 30_000 } })
    const gone = await scene.ask(`DELETE /v1/locks/reports/2026-11?lease=${lease}`)
    expect(gone.status).toBe(200)
    expect(await scene.store.read({ key: 'reports/2026-11' })).toMatchObject({ count: 0 })
    expect((await scene.store.read({ lease })).lease).toBeUndefined()
    const { tenures } = await scene.store.read({ history: 'reports/2026-11' })
    expect(tenures[0]).toMatchObject({ token, holder: 'me', end: { reason: 'released' } })
    expect((await take('reports/2026-11')).token).toBeGreaterThan(token)
  })

  it('says who holds it where it is busy, and takes no place in line', async () => {
    const { token } = await take('busy', 'holder=ada')
    const { status, type, body } = await scene.ask('POST /v1/locks/busy')
    expect([status, type]).toEqual([409, expect.stringMatching(/^application\/problem\+json/)])
    expect(body).toMatchObject({ code: 'busy', outcome: 'refused', holder: 'ada', token })
    expect(body.until).toBeGreaterThan(0)
    expect(await scene.store.read({ key: 'busy' })).toMatchObject({ count: 1 })
  })

  it('says who holds it when the wait is over, and has left the line', async () => {
    const { token } = await take('late', 'holder=ada')
    const { status, body } = await scene.ask('POST /v1/locks/late?wait=30ms&holder=ben')
    expect(status).toBe(409)
    expect(body).toMatchObject({ code: 'timeout', holder: 'ada', token })
    expect(await scene.store.read({ key: 'late' })).toMatchObject({ count: 1 })
  })

  it('hands the key to those who wait in the order in which they came', async () => {
    const first = await take('line')
    const order: string[] = []
    const waiters: Promise<unknown>[] = []
    for (const name of ['a', 'b', 'c', 'd']) {
      const asked = scene.ask(`POST /v1/locks/line?wait=20s&holder=${name}`)
      waiters.push(
        asked.then(async ({ status, body }) => {
          expect([status, body.remaining]).toEqual([201, 30_000])
          order.push(name)
          await scene.ask(`DELETE /v1/locks/line?lease=${body.lease}`)
          return body.token
        }),
      )
      await scene.claims('line', waiters.length + 1)
    }
    await scene.ask(`DELETE /v1/locks/line?lease=${first.lease}`)
    const tokens = await Promise.all(waiters)
    expect(order).toEqual(['a', 'b', 'c', 'd'])
    expect(tokens).toEqual([...tokens].sort((a, b) => Number(a) - Number(b)))
  })

  it('keeps the lease of one who waits longer than its ttl', async () => {
    const first = await take('patient')
    const waiting = scene.ask('POST /v1/locks/patient?ttl=60ms&wait=20s')
    await scene.claims('patient', 2)
    const { claims } = await scene.store.read({ key: 'patient' })
    const { lease } = claims[1]!
    const before = (await scene.store.read({ lease })).lease!.renewedAt
    // Renewed many times its ttl later, told by the store's own clock.
    for (let renewedAt = before; renewedAt < before + 200; ) {
      renewedAt = (await scene.store.read({ lease })).lease!.renewedAt
      await new Promise((resolve) => setImmediate(resolve))
    }
    await scene.ask(`DELETE /v1/locks/patient?lease=${first.lease}`)
    expect((await waiting).status).toBe(201)
  })

  it('leaves no claim of one whose connection breaks while it waits', async () => {
    const { lease } = await take('cut')
    const sent = await scene.begin('POST', '/v1/locks/cut?wait=20s&ttl=1h')
    await scene.claims('cut', 2)
    await closed(sent)
    await scene.claims('cut', 1)
    await scene.ask(`DELETE /v1/locks/cut?lease=${lease}`)
    expect((await take('cut')).remaining).toBe(30_000)
  })

  it('tells of its loss, and why, when it is to be kept', async () => {
    const { lease, token } = await take('lost')
    await scene.store.revoke({ target: { lease }, by: 'ops', why: 'host gone' })
    const { status, body } = await scene.ask(`PUT /v1/locks/lost?lease=${lease}`)
    expect(status).toBe(410)
    expect(body).toMatchObject({ code: 'lost', reason: 'revoked', by: 'ops', why: 'host gone' })
    const next = await take('lost')
    expect(next.token).toBeGreaterThan(token)
    const released = await scene.ask(`DELETE /v1/locks/lost?lease=${lease}`)
    expect(released).toMatchObject({ status: 410, body: { reason: 'revoked' } })
    expect((await scene.store.read({ key: 'lost' })).claims[0]).toMatchObject({ token: next.token })
  })

  it('is lost when its key was taken from it, though its lease lives', async () => {
    const { lease } = await take('taken')
    await scene.store.revoke({ target: { key: 'taken' }, by: 'ops', why: 'no' })
    const { status, body } = await scene.ask(`PUT /v1/locks/taken?lease=${lease}`)
    expect([status, body.code, body.reason, body.by]).toEqual([410, 'lost', 'revoked', 'ops'])
  })

  it('has any key in its path', async () => {
    for (const key of ['a b', 'ä/ö', '100%', 'q?x=1&y', 'a//b/', '#', "it's", 'a+b', '%2F']) {
      const path = key.split('/').map(encodeURIComponent).join('/')
      const { body } = await scene.ask(`POST /v1/locks/${path}`)
      expect(body.key).toBe(key)
      const { status } = await scene.ask(`DELETE /v1/locks/${path}?lease=${body.lease}`)
      expect(status).toBe(200)
    }
    const long = 'k'.repeat(512)
    expect((await scene.ask(`POST /v1/locks/${long}`)).body.key).toBe(long)
    expect((await scene.ask(`POST /v1/locks/${long}x`)).body.detail).toMatch(/at most 512/)
  })

  it('may be shared, with a limit', async () => {
    await take('shared', 'mode=shared&limit=2')
    await take('shared', 'mode=shared&limit=2')
    const third = await scene.ask('POST /v1/locks/shared?mode=shared&limit=2')
    expect(third.body.code).toBe('busy')
  })

  it.each([
    ['tll=30s', /"tll" is unknown/],
    ['ttl=soon', /ttl is "soon": write a duration/],
    ['ttl=1ms', /shortest/],
    ['wait=1h', /waits at most 300s/],
    ['limit=0', /limit must be >= 1/],
    ['mode=any', /exclusive, shared/],
    ['ttl=1s&ttl=2s', /ttl/],
    ['limit=2', /a limit goes with 'shared'/],
  ])('is refused for %s, with what to do', async (query, detail) => {
    const { status, body } = await scene.ask(`POST /v1/locks/wrong?${query}`)
    expect([status, body.code]).toEqual([400, 'invalid-argument'])
    expect(body.detail).toMatch(detail)
  })
})

describe('a request that is sent again with its Idempotency-Key', () => {
  const again = { 'idempotency-key': 'once' }

  it('finds its own lock', async () => {
    const one = await scene.ask('POST /v1/locks/again', undefined, again)
    const two = await scene.ask('POST /v1/locks/again', undefined, again)
    expect(two).toMatchObject({ status: 201, body: one.body })
    // The same name for another key is another request.
    const other = await scene.ask('POST /v1/locks/again2', undefined, again)
    expect(other.body.lease).not.toBe(one.body.lease)
    const lease = `lease=${one.body.lease}`
    const gone = await scene.ask(`DELETE /v1/locks/again?${lease}`, undefined, again)
    expect(await scene.ask(`DELETE /v1/locks/again?${lease}`, undefined, again)).toMatchObject({
      status: 200,
      body: gone.body,
    })
  })

  it('is told that the first waited in vain', async () => {
    await take('vain')
    const first = await scene.ask('POST /v1/locks/vain?wait=20ms', undefined, again)
    const second = await scene.ask('POST /v1/locks/vain?wait=20s', undefined, again)
    expect([first.status, second.status]).toEqual([409, 409])
    expect(second.body).toMatchObject({ code: 'timeout' })
  })

  it('is not accepted where it would mean nothing', async () => {
    const { status, body } = await scene.ask('GET /v1/keys', undefined, again)
    expect([status, body.code]).toEqual([400, 'invalid-argument'])
  })
})

describe('a server that stops', () => {
  it('tells those who wait to ask again, and leaves no claim of theirs', async () => {
    const own = await Scene.open()
    const held = await own.ask('POST /v1/locks/k?ttl=1h')
    const waiting = own.ask('POST /v1/locks/k?wait=20s&ttl=1h')
    await own.claims('k', 2)
    const ended = own.server.close()
    expect(await waiting).toMatchObject({ status: 503, body: { code: 'closed' } })
    await ended
    const { claims } = await own.store.read({ key: 'k' })
    expect(claims.map(({ lease }) => lease)).toEqual([held.body.lease])
    await own.store.close()
  })
})
