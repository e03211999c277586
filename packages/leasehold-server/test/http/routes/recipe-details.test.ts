import { Leasehold } from 'leasehold'
import { memoryStore } from 'leasehold/memory'
import { TestClock } from 'leasehold/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Scene } from '../scene.ts'

let scene: Scene
let leasehold: Leasehold
beforeAll(async () => {
  scene = await Scene.open()
  leasehold = await Leasehold.open(scene.store, { holder: 'typescript' })
})
afterAll(async () => {
  await leasehold.close()
  await scene.close()
})

const refused = (status: number, code: string) => ({ status, body: { code } })

describe('an instance over HTTP', () => {
  const register = async (query: string, spec: object = {}) =>
    (await scene.ask(`POST /v1/services/${query}`, spec)).body

  it('gets an id if it gives none, its holder, and fifteen seconds', async () => {
    const { service, id, key, lease, token, remaining } = await register('one?holder=ada')
    expect([service, remaining, id.length]).toEqual(['one', 15_000, 12])
    const read = await scene.store.read({ lease })
    expect(read.lease).toMatchObject({ holder: 'ada', ttl: 15_000 })
    expect(read.claims).toMatchObject([{ key, token }])
    const other = await register('one')
    expect(other.id).not.toBe(id)
    expect((await scene.store.read({ lease: other.lease })).lease?.holder).toBe('everybody')
  })

  it('is found by its zone and its status', async () => {
    const { lease } = await register('two?id=a', { zone: 'eu' })
    await register('two?id=b', { zone: 'us' })
    const found = async (query: string) =>
      (await scene.ask(`GET /v1/services/two?${query}`)).body.instances.map(
        ({ id }: { id: string }) => id,
      )
    expect(await found('zone=eu')).toEqual(['a'])
    await scene.ask(`PUT /v1/services/two/a?lease=${lease}&status=critical`)
    expect(await found('')).toEqual(['b'])
    expect(await found('status=critical')).toEqual(['a'])
    expect(await found('status=critical&status=passing')).toEqual(['a', 'b'])
    expect(await found('status=warning&status=any')).toEqual(['a', 'b'])
    expect((await scene.ask('GET /v1/services/two?status=odd')).status).toBe(400)
  })

  it('updates one or several fields of its state, and keeps the others', async () => {
    const { id, lease } = await register('three')
    const shown = async () => (await leasehold.registry.find('three', { status: 'any' }))[0]
    const path = `PUT /v1/services/three/${id}?lease=${lease}`
    await scene.ask(`${path}&load=0.5`)
    expect(await shown()).toMatchObject({ status: 'passing', load: 0.5 })
    await scene.ask(`${path}&status=warning&note=slow`)
    expect(await shown()).toMatchObject({ status: 'warning', note: 'slow', load: 0.5 })
    await scene.ask(`${path}&maintenance=cleaning`)
    expect(await shown()).toMatchObject({ status: 'maintenance', note: 'cleaning' })
    await scene.ask(path)
    expect(await shown()).toMatchObject({ status: 'maintenance' })
    await scene.ask(`${path}&maintenance=off`)
    expect(await shown()).toMatchObject({ status: 'warning', load: 0.5 })
  })

  it('is kept and taken out by its own lease only', async () => {
    const { id } = await register('four')
    const other = await register('four')
    for (const method of ['PUT', 'DELETE']) {
      const ask = (lease: string) => scene.ask(`${method} /v1/services/four/${id}?lease=${lease}`)
      expect(await ask(other.lease)).toMatchObject(refused(404, 'claim-not-found'))
      expect(await ask('9.999999')).toMatchObject(refused(404, 'lease-not-found'))
    }
    expect((await leasehold.registry.find('four')).length).toBe(2)
    const gone = await scene.ask(`DELETE /v1/services/four/${other.id}?lease=${other.lease}`)
    expect(gone.body).toEqual({ ended: true })
    expect((await leasehold.registry.find('four')).map((it) => it.id)).toEqual([id])
  })
})

describe('a permit over HTTP', () => {
  beforeAll(async () => {
    const resources = [{ name: 'g', shares: 4 }, { name: 'h' }]
    expect((await scene.ask('PUT /v1/pools/gpu', { resources })).status).toBe(200)
    expect((await scene.ask('PUT /v1/pools/other', { resources })).status).toBe(200)
  })
  const take = (query: string) => scene.ask(`POST /v1/pools/gpu/permits?${query}`)
  const giveBack = (lease: string) => scene.ask(`DELETE /v1/pools/gpu/permits/${lease}`)

  it('is taken with the requested options, for an hour', async () => {
    const query = 'tenant=t&kind=train&count=1&shares=2&priority=3&preemptible=true'
    const { status, body } = await take(query)
    expect(status).toBe(201)
    // Its holder counts from sending, and allows for a clock that goes at another rate.
    expect(body.remaining).toBeGreaterThan(3_500_000)
    expect(body.remaining).toBeLessThan(3_600_000)
    expect(body).toMatchObject({ resources: ['g'], tenant: 't', kind: 'train' })
    expect(body.keys.every((key: string) => key.startsWith('pool/gpu/r/g'))).toBe(true)
    const { resources } = (await scene.ask('GET /v1/pools/gpu')).body
    expect(resources[0]).toMatchObject({
      free: 2,
      permits: [{ token: body.token, shares: 2, priority: 3, preemptible: true }],
    })
    expect((await giveBack(body.lease)).body).toEqual({ ended: true })
    expect((await scene.ask('GET /v1/pools/gpu')).body.resources[0].free).toBe(4)
  })

  it('notifies its holder when another requests it back', async () => {
    const definition = { resources: [{ name: 'x' }], notice: '1m' }
    await scene.ask('PUT /v1/pools/solo', definition)
    const pool = '/v1/pools/solo/permits'
    const held = await scene.ask(`POST ${pool}?tenant=t&priority=1&preemptible=true`)
    const extend = () => scene.ask(`PUT ${pool}/${held.body.lease}`)
    expect((await extend()).body).not.toHaveProperty('notice')
    const waiting = scene.ask(`POST ${pool}?tenant=t&priority=5&wait=20s`)
    let notice: unknown
    while (notice === undefined) notice = (await extend()).body.notice
    expect(notice).toBeInstanceOf(Object)
    await scene.ask(`DELETE ${pool}/${held.body.lease}`)
    expect(await waiting).toMatchObject({ status: 201, body: { resources: ['x'] } })
  })

  it('is known by its lease, in its own pool only, and no more when it was returned', async () => {
    const { lease } = (await take('tenant=t')).body
    const others = (await scene.ask('POST /v1/pools/other/permits?tenant=t')).body.lease
    const lock = (await scene.ask('POST /v1/locks/no-permit')).body.lease
    for (const method of ['PUT', 'DELETE']) {
      for (const id of [lock, '9.999999']) {
        const answer = await scene.ask(`${method} /v1/pools/gpu/permits/${id}`)
        expect(answer).toMatchObject(refused(404, 'lease-not-found'))
      }
    }
    expect((await scene.store.read({ key: 'no-permit' })).count).toBe(1)
    await giveBack(lease)
    expect(await giveBack(lease)).toMatchObject(refused(410, 'lost'))
    expect((await scene.store.read({ lease: others })).lease).toBeDefined()
  })
})

describe('a session over HTTP', () => {
  const create = async (user: string, more: object = {}) =>
    (await scene.ask('POST /v1/sessions/main', { user, data: { n: 1 }, ...more })).body

  it('shows its secret only to its owner', async () => {
    const { id, ref, lease } = await create('ada')
    const path = `/v1/sessions/main/${id}`
    const own = { id, ref, user: 'ada', data: { n: 1 }, lease }
    expect((await scene.ask(`GET ${path}`)).body).toEqual(own)
    expect((await scene.ask(`PUT ${path}`, { data: 2 })).body).toEqual({ ...own, data: 2 })
    const { sessions } = (await scene.ask('GET /v1/sessions/main?user=ada')).body
    const times = { createdAt: expect.any(Number), until: expect.any(Number) }
    expect(sessions).toEqual([{ ref, user: 'ada', data: 2, lease, ...times }])
    expect((await scene.ask('GET /v1/sessions/other?user=ada')).body.sessions).toEqual([])
    expect((await scene.ask(`GET /v1/sessions/other/${id}`)).status).toBe(404)
  })

  it('are listed up to the limit', async () => {
    for (let at = 0; at < 3; at++) await create('ben')
    const listed = async (limit: string) =>
      (await scene.ask(`GET /v1/sessions/main?user=ben${limit}`)).body.sessions.length
    expect([await listed(''), await listed('&limit=2')]).toEqual([3, 2])
  })

  it('is used by a touch, and not by a read', async () => {
    const clock = new TestClock()
    const store = memoryStore({ clock })
    const own = await Scene.open({ store, clock })
    const spec = { user: 'cy', data: {}, ttl: '5s' }
    const { id, lease } = (await own.ask('POST /v1/sessions/main', spec)).body
    const renewed = async () => (await store.read({ lease })).lease!.renewedAt
    const before = await renewed()
    // A use within a tenth of the ttl after the last one is not written.
    await clock.advance(600)
    await own.ask(`GET /v1/sessions/main/${id}`)
    await own.ask(`GET /v1/sessions/main/${id}?touch=false`)
    expect(await renewed()).toBe(before)
    await own.ask(`GET /v1/sessions/main/${id}?touch=true`)
    expect(await renewed()).toBe(before + 600)
    await own.close()
  })

  it('ends with the reason that was given, or none', async () => {
    const [one, two] = [await create('dee'), await create('dee')]
    await scene.ask(`DELETE /v1/sessions/main/${one.id}?why=logout`)
    await scene.ask(`DELETE /v1/sessions/main/${two.id}`)
    expect((await scene.store.read({ lease: one.lease })).end?.why).toBe('logout')
    expect((await scene.store.read({ lease: two.lease })).end?.why).toBe('ended')
    const three = await create('dee')
    const { body } = await scene.ask('DELETE /v1/sessions/main?user=dee&why=password')
    expect(body).toEqual({ ended: 1 })
    expect((await scene.store.read({ lease: three.lease })).end?.why).toBe('password')
  })
})
