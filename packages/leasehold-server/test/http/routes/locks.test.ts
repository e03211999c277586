import { memoryStore } from 'leasehold/memory'
import { TestClock } from 'leasehold/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { changedStore, Gate } from '../../setup/changed-store.ts'
import { closed, Scene, until } from '../scene.ts'

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

  it('names the holder if it is busy, and does not join the queue', async () => {
    const { token } = await take('busy', 'holder=ada')
    const { status, type, body } = await scene.ask('POST /v1/locks/busy')
    expect([status, type]).toEqual([409, expect.stringMatching(/^application\/problem\+json/)])
    expect(body).toMatchObject({ code: 'busy', outcome: 'refused', holder: 'ada', token })
    expect(body.until).toBeGreaterThan(0)
    expect(await scene.store.read({ key: 'busy' })).toMatchObject({ count: 1 })
  })

  it('names the holder when the wait is over, and has left the queue', async () => {
    const { token } = await take('late', 'holder=ada')
    const { status, body } = await scene.ask('POST /v1/locks/late?wait=30ms&holder=ben')
    expect(status).toBe(409)
    expect(body).toMatchObject({ code: 'timeout', holder: 'ada', token })
    expect(await scene.store.read({ key: 'late' })).toMatchObject({ count: 1 })
  })

  it('tells a caller that may not read keys which claim was ahead when it joined the queue', async () => {
    const own = await Scene.open()
    const headers = { authorization: `Bearer ${await own.token('ann', 'claim:')}` }
    await own.store.grant({ holder: 'ada', ttl: 60_000, claims: [{ key: 'k', value: 'secret' }] })
    const { status, body } = await own.ask('POST /v1/locks/k?wait=20ms', undefined, headers)
    expect([status, body.code, body.holder]).toEqual([409, 'timeout', 'ada'])
    expect(body.detail).toMatch(/ada holds it/)
    expect(JSON.stringify(body)).not.toContain('secret')
    await own.close()
  })

  it('says how many hold a shared one when the wait is over', async () => {
    await take('full', 'mode=shared&limit=2&holder=ada')
    await take('full', 'mode=shared&limit=2&holder=ben')
    const { body } = await scene.ask('POST /v1/locks/full?mode=shared&limit=2&wait=20ms')
    expect(body.ahead).toMatchObject([{ key: 'full', count: 2, first: { holder: 'ada' } }])
  })

  it('has the requested duration, holder and value', async () => {
    const query = 'ttl=45500.5&grace=5s&maxLife=1h&holder=ada&value=nightly'
    const { lease, remaining } = await take('asked', query)
    expect(remaining).toBe(45_500.5)
    const read = await scene.store.read({ lease })
    expect(read.lease).toMatchObject({ ttl: 45_500.5, grace: 5000, holder: 'ada' })
    expect(read.lease!.endOfLife - read.lease!.grantedAt).toBe(3_600_000)
    expect(read.claims).toMatchObject([{ mode: 'exclusive', value: 'nightly' }])
    expect((await take('usual', '')).remaining).toBe(30_000)
    expect((await scene.store.read({ key: 'usual' })).claims[0]?.holder).toBe('everybody')
    const longest = await scene.ask('POST /v1/locks/longest?wait=300s')
    expect(longest.status).toBe(201)
  })

  it('has the rest of its life if it was waited for', async () => {
    const first = await take('worn')
    const waiting = scene.ask('POST /v1/locks/worn?wait=20s&ttl=1h&maxLife=1h')
    await scene.claims('worn', 2)
    await new Promise((resolve) => setTimeout(resolve, 5))
    await scene.ask(`DELETE /v1/locks/worn?lease=${first.lease}`)
    const { remaining } = (await waiting).body
    expect(remaining).toBeGreaterThan(3_500_000)
    expect(remaining).toBeLessThan(3_600_000)
  })

  it('does not exist while its claim waits, nor for another lease', async () => {
    const { lease } = await take('held')
    const claims = [{ key: 'held' }]
    const queued = (await scene.ask('POST /v1/leases', { ttl: '30s', claims })).body.lease
    for (const [what, id] of [
      ['PUT /v1/locks/held', queued],
      ['DELETE /v1/locks/elsewhere', lease],
      ['PUT /v1/locks/held', '9.999999'],
    ] as const) {
      const answer = await scene.ask(`${what}?lease=${id}`)
      expect(answer).toMatchObject({ status: 404, body: { outcome: 'refused' } })
    }
    const { body } = await scene.ask(`DELETE /v1/locks/elsewhere?lease=${lease}`)
    expect(body.detail).toMatch(/does not hold "elsewhere": .* of the same lock$/)
    expect((await scene.store.read({ key: 'held' })).count).toBe(2)
  })

  it('releases its lease with it, unless other leases live under that', async () => {
    const { lease } = await take('parent')
    const child = await scene.ask('POST /v1/leases', { ttl: '30s', parent: lease })
    expect((await scene.ask(`DELETE /v1/locks/parent?lease=${lease}`)).status).toBe(200)
    expect((await scene.store.read({ lease })).lease).toMatchObject({ claims: 0, children: 1 })
    expect((await scene.ask(`GET /v1/leases/${child.body.lease}`)).status).toBe(200)
  })

  it('gives the key to the waiters in the order of their arrival', async () => {
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

  it('keeps the lease of a waiter that waits longer than its ttl', async () => {
    const clock = new TestClock()
    const own = await Scene.open({ clock, store: memoryStore({ clock }) })
    const first = (await own.ask('POST /v1/locks/k?ttl=1h')).body
    const waiting = own.ask('POST /v1/locks/k?ttl=6s&wait=5m')
    await own.claims('k', 2)
    for (let second = 0; second < 60; second++) await clock.advance(1000)
    await own.ask(`DELETE /v1/locks/k?lease=${first.lease}`)
    expect((await waiting).status).toBe(201)
    await own.close()
  })

  it('leaves no claim of a waiter whose connection breaks', async () => {
    const { lease } = await take('cut')
    const sent = await scene.begin('POST', '/v1/locks/cut?wait=20s&ttl=1h')
    await scene.claims('cut', 2)
    await closed(sent)
    await scene.claims('cut', 1)
    await scene.ask(`DELETE /v1/locks/cut?lease=${lease}`)
    expect((await take('cut')).remaining).toBe(30_000)
  })

  it('reports its loss, and the reason, when it is renewed', async () => {
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

  it('is lost when its key was taken from it, although its lease lives', async () => {
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
    expect((await scene.ask(`POST /v1/locks/${long}x`)).body.detail).toMatch(/maximum is 512/)
  })

  it('may be shared, with a limit', async () => {
    await take('shared', 'mode=shared&limit=2')
    await take('shared', 'mode=shared&limit=2')
    const third = await scene.ask('POST /v1/locks/shared?mode=shared&limit=2')
    expect(third.body.code).toBe('busy')
  })

  it.each([
    ['tll=30s', /"tll" is unknown/],
    ['ttl=soon', /ttl is "soon": give milliseconds/],
    ['ttl=s30', /ttl is "s30": give milliseconds/],
    ['ttl=1ms', /minimum/],
    ['wait=1h', /the maximum is 300s/],
    ['limit=0', /limit must be >= 1/],
    ['mode=any', /exclusive, shared/],
    ['ttl=1s&ttl=2s', /ttl/],
    ['limit=2', /a limit only with mode 'shared'/],
  ])('is refused for %s, with the fix', async (query, detail) => {
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

  it('reports that the first waited without success', async () => {
    await take('vain')
    const first = await scene.ask('POST /v1/locks/vain?wait=20ms', undefined, again)
    const second = await scene.ask('POST /v1/locks/vain?wait=20s', undefined, again)
    expect([first.status, second.status]).toEqual([409, 409])
    expect(second.body).toMatchObject({ code: 'timeout' })
  })

  it('is not accepted if it has no effect', async () => {
    const { status, body } = await scene.ask('GET /v1/keys', undefined, again)
    expect([status, body.code]).toEqual([400, 'invalid-argument'])
  })
})

describe('a server that stops', () => {
  it('makes waiters retry, and leaves no claims of theirs', async () => {
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

  it('first withdraws the claims of a caller that has gone', async () => {
    const store = memoryStore()
    const gate = new Gate()
    let revoking = false
    const slow = changedStore(store, {
      revoke: async (request) => {
        revoking = true
        await gate.opened
        return store.revoke(request)
      },
    })
    const own = await Scene.open({ store: slow })
    await own.ask('POST /v1/locks/k?ttl=1h')
    const sent = await own.begin('POST', '/v1/locks/k?wait=20s&ttl=1h')
    await own.claims('k', 2)
    await closed(sent)
    await until(() => revoking)
    let isClosed = false
    const ended = own.server.close().then(() => {
      isClosed = true
    })
    await own.ask('GET /healthz').catch(() => {})
    expect(isClosed).toBe(false)
    gate.open()
    await ended
    expect((await store.read({ key: 'k' })).count).toBe(1)
    await store.close()
  })
})
