import { memoryStore } from 'leasehold/memory'
import type { LeaseStore } from 'leasehold/port'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { changedStore, Gate } from '../../../setup/changed-store.ts'
import { Scene, until } from '../../scene.ts'
import { cut, once, sendRaw, turns } from './cut-off.ts'

describe('a repeated request', () => {
  let scene: Scene
  beforeAll(async () => {
    scene = await Scene.open()
  })
  afterAll(() => scene.close())

  it('joins the first while that waits, and both get one answer', async () => {
    const held = await scene.ask('POST /v1/locks/joined')
    const what = 'POST /v1/locks/joined?wait=20s&ttl=60s'
    const gone = await sendRaw(scene, what, 'j')
    await scene.claims('joined', 2)
    const stay = [1, 2].map(() => scene.ask(what, undefined, once('j')))
    await until(() => scene.server.httpStats.waiting === 3)
    await cut(gone)
    await scene.ask(`DELETE /v1/locks/joined?lease=${held.body.lease}`)
    const [one, two] = await Promise.all(stay)
    expect([one!.status, two!.body]).toEqual([201, one!.body])
    expect((await scene.store.read({ key: 'joined' })).count).toBe(1)
  })

  it('leaves the queue with the last caller, and a later one queues again', async () => {
    const held = await scene.ask('POST /v1/locks/left')
    const what = 'POST /v1/locks/left?wait=20s&ttl=60s'
    for (let at = 0; at < 3; at++) {
      const gone = await sendRaw(scene, what, 'l')
      await scene.claims('left', 2)
      await cut(gone)
      await scene.claims('left', 1)
    }
    const last = scene.ask(what, undefined, once('l'))
    await scene.claims('left', 2)
    await scene.ask(`DELETE /v1/locks/left?lease=${held.body.lease}`)
    const answer = await last
    expect(answer.status).toBe(201)
    expect((await scene.ask(what, undefined, once('l'))).body).toEqual(answer.body)
  })

  it('is answered with the same problem when the first did not get it in time', async () => {
    await scene.ask('POST /v1/locks/vain?ttl=60s')
    const first = await scene.ask('POST /v1/locks/vain?wait=20ms', undefined, once('v'))
    const second = await scene.ask('POST /v1/locks/vain?wait=20s', undefined, once('v'))
    expect(first).toMatchObject({ status: 409, body: { code: 'timeout' } })
    expect(second.body).toEqual(first.body)
  })

  it.each([
    ['POST /v1/locks/other?ttl=60s', undefined, 'POST /v1/locks/other?ttl=1h', undefined, 'ttl'],
    [
      'POST /v1/leases',
      { ttl: '60s', holder: 'me', claims: [{ key: 'x1' }] },
      'POST /v1/leases',
      { holder: 'me', ttl: '60s', claims: [{ key: 'x2' }] },
      'claims',
    ],
    ['POST /v1/services/s?id=a', {}, 'POST /v1/services/s?id=b', { zone: 'z' }, 'id, zone'],
  ])('is refused for a different request: %s', async (first, body, second, other, name) => {
    const one = await scene.ask(first, body, once('else'))
    expect(one.status).toBe(201)
    const { revision } = await scene.store.read({ key: 'x' })
    const two = await scene.ask(second, other, once('else'))
    expect(two).toMatchObject({ status: 422, body: { code: 'key-reused', outcome: 'refused' } })
    expect(two.body.detail).toContain(`different ${name}: repeat`)
    expect((await scene.store.read({ key: 'x' })).revision).toBe(revision)
    const again = await scene.ask(first, body, once('else'))
    expect(again).toMatchObject({ status: 201, body: one.body })
  })

  it('needs a non-empty key', async () => {
    const { status, body } = await scene.ask('POST /v1/locks/empty', undefined, once(''))
    expect([status, body.code]).toEqual([400, 'invalid-argument'])
    expect((await scene.store.read({ key: 'empty' })).count).toBe(0)
  })

  it('may be a corrected one, if the first was wrong in itself', async () => {
    const wrong = await scene.ask('POST /v1/locks/slip?ttl=soon', undefined, once('slip'))
    const right = await scene.ask('POST /v1/locks/slip?ttl=30s', undefined, once('slip'))
    expect([wrong.status, right.status]).toEqual([400, 201])
  })

  it('does not report a lock as held that was taken away since', async () => {
    const what = 'POST /v1/locks/forced?ttl=60s'
    expect((await scene.ask(what, undefined, once('f'))).status).toBe(201)
    await scene.ask('DELETE /v1/keys/forced?why=stuck')
    const next = await scene.ask(what)
    expect(next.status).toBe(201)
    const again = await scene.ask(what, undefined, once('f'))
    expect(again).toMatchObject({ status: 410, body: { code: 'lost' } })
    const lease = { ttl: '60s', claims: [{ key: 'forced/lease' }] }
    expect((await scene.ask('POST /v1/leases', lease, once('fl'))).status).toBe(201)
    await scene.ask('DELETE /v1/keys/forced/lease?why=stuck')
    expect((await scene.ask('POST /v1/leases', lease, once('fl'))).status).toBe(410)
  })

  it('has the id that the first registration was given', async () => {
    const spec = { address: '10.0.0.7:80' }
    const one = await scene.ask('POST /v1/services/again', spec, once('r'))
    const two = await scene.ask('POST /v1/services/again', spec, once('r'))
    expect(two).toMatchObject({ status: 201, body: one.body })
    const { body } = await scene.ask('GET /v1/services/again')
    expect(body.instances.map(({ id }: { id: string }) => id)).toEqual([one.body.id])
  })

  it('finds its release of one key of several', async () => {
    const claims = [{ key: 'pair/1' }, { key: 'pair/2' }]
    const { body } = await scene.ask('POST /v1/leases', { ttl: '60s', claims })
    const what = `DELETE /v1/locks/pair/1?lease=${body.lease}`
    const first = await scene.ask(what, undefined, once('d'))
    expect(first.status).toBe(200)
    expect(await scene.ask(what, undefined, once('d'))).toMatchObject({ body: first.body })
    expect((await scene.store.read({ lease: body.lease })).claims).toHaveLength(1)
  })

  it('finds its claims, waits for them with the first, and claims again when all had left', async () => {
    const held = await scene.ask('POST /v1/locks/many/2?ttl=60s')
    const { body } = await scene.ask('POST /v1/leases', { ttl: '60s' })
    const what = `POST /v1/leases/${body.lease}/claims?wait=20s`
    const wanted = { claims: [{ key: 'many/1' }, { key: 'many/2' }] }
    const abort = new AbortController()
    const gone = scene.ask(what, wanted, once('c'), abort.signal).catch(() => 'gone')
    await scene.claims('many/2', 2)
    abort.abort()
    expect(await gone).toBe('gone')
    await scene.claims('many/1', 0)
    await scene.claims('many/2', 1)
    const both = [1, 2].map(() => scene.ask(what, wanted, once('c')))
    await scene.claims('many/2', 2)
    await scene.ask(`DELETE /v1/locks/many/2?lease=${held.body.lease}`)
    const [one, two] = await Promise.all(both)
    expect(one).toMatchObject({ status: 201, body: { holds: true, ahead: [] } })
    expect(two!.body).toEqual(one!.body)
    expect((await scene.ask(what, wanted, once('c'))).body).toEqual(one!.body)
  })
})

describe('a repeat at another server, or after a restart', () => {
  const secretsKey = Buffer.alloc(32, 7)
  let store: LeaseStore
  let one: Scene
  let two: Scene
  beforeAll(async () => {
    store = memoryStore()
    one = await Scene.open({ store, secretsKey })
    two = await Scene.open({ store, secretsKey })
  })
  afterAll(async () => {
    await Promise.all([one.server.close(), two.server.close()])
    await store.close()
  })

  it('gets the first answer, and removes nothing when it is disconnected', async () => {
    const what = 'POST /v1/locks/far?ttl=60s'
    const first = await one.ask(what, undefined, once('far'))
    expect(await two.ask(what, undefined, once('far'))).toMatchObject({ body: first.body })
    for (let at = 0; at < 20; at++) {
      const hedge = await sendRaw(two, what, 'far')
      await turns(at)
      await cut(hedge)
    }
    expect(await two.ask(what)).toMatchObject({ status: 409, body: { token: first.body.token } })
  })

  it('knows the lease with its secret, for its own principal only', async () => {
    const ann = await one.token('ann', 'claim:')
    const bob = await one.token('bob', 'claim:')
    await until(() => !two.server.access.tokens.isEmpty)
    const as = (token: string) => ({ ...once('s'), authorization: `Bearer ${token}` })
    const first = await one.ask('POST /v1/locks/secret?ttl=60s', undefined, as(ann))
    expect(first.body.lease).toContain('~')
    await one.server.close()
    const next = await Scene.open({ store, secretsKey })
    const again = await next.ask('POST /v1/locks/secret?ttl=60s', undefined, as(ann))
    expect(again).toMatchObject({ status: 201, body: first.body })
    expect((await next.ask('POST /v1/locks/secret?ttl=60s', undefined, as(bob))).status).toBe(409)
    await next.server.close()
  })
})

describe('a repeat', () => {
  it('is not refused for a quota that its first request has used up', async () => {
    const scene = await Scene.open()
    const quota = { leases: 1, claims: 1 }
    const rights = [{ verbs: ['claim'], prefix: '' }] as const
    const token = await scene.server.access.tokens.create({ name: 'ann', rights, quota })
    const headers = { ...once('q'), authorization: `Bearer ${token}` }
    const first = await scene.ask('POST /v1/locks/quota', undefined, headers)
    const again = await scene.ask('POST /v1/locks/quota', undefined, headers)
    expect(again).toMatchObject({ status: 201, body: first.body })
    await scene.close()
  })

  it('gets the outcome of a first request whose outcome was unknown', async () => {
    const store = memoryStore()
    let lost = true
    const flaky = changedStore(store, {
      grant: async (request) => {
        const answer = await store.grant(request)
        if (!lost) return answer
        lost = false
        throw new Error('the answer was lost')
      },
    })
    const scene = await Scene.open({ store: flaky })
    const first = await scene.ask('POST /v1/locks/unknown', undefined, once('u'))
    expect(first).toMatchObject({ status: 503, body: { outcome: 'unknown' } })
    expect((await scene.ask('POST /v1/locks/unknown', undefined, once('u'))).status).toBe(201)
    await scene.close()
  })

  it('during the withdrawal of the first waits for that, and claims again', async () => {
    const store = memoryStore()
    const gate = new Gate()
    let holdUp = true
    const slow = changedStore(store, {
      revoke: async (request) => {
        if (holdUp) await gate.opened
        return store.revoke(request)
      },
    })
    const scene = await Scene.open({ store: slow })
    const held = await store.grant({ holder: 'h', ttl: 60_000, claims: [{ key: 'slow' }] })
    if (held.outcome === 'busy') throw new Error('busy')
    const gone = await sendRaw(scene, 'POST /v1/locks/slow?wait=20s', 'w')
    await scene.claims('slow', 2)
    await cut(gone)
    const stays = scene.ask('POST /v1/locks/slow?wait=20s', undefined, once('w'))
    await until(() => scene.server.httpStats.waiting > 1)
    holdUp = false
    gate.open()
    await store.release({ lease: held.lease, keys: ['slow'], token: held.token })
    const answer = await stays
    expect(answer.status).toBe(201)
    const { claims } = await store.read({ key: 'slow' })
    expect(claims.map(({ token }) => token)).toEqual([answer.body.token])
    await scene.close()
  })
})
