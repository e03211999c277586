import { Leasehold } from 'leasehold'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { closed, Scene } from '../scene.ts'

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

describe('the registry over HTTP', () => {
  it('registers an instance that every other client finds, until it is removed', async () => {
    const spec = { address: '10.0.0.7:80', capabilities: ['embed', 'rank'], tags: ['eu'] }
    const { status, body } = await scene.ask('POST /v1/services/embedder?id=i-1&ttl=20s', spec)
    expect([status, body.remaining]).toEqual([201, 20_000])
    expect(await leasehold.registry.find('embedder')).toMatchObject([{ id: 'i-1', ...spec }])
    const find = async (query: string) =>
      (await scene.ask(`GET /v1/services/embedder?${query}`)).body.instances.length
    expect(await find('capability=embed&capability=rank&tag=eu')).toBe(1)
    expect(await find('capability=paint')).toBe(0)
    expect(await find('tag=us')).toBe(0)
    expect((await scene.ask('GET /v1/services')).body.services).toContain('embedder')
    const taken = await scene.ask('POST /v1/services/embedder?id=i-1', spec)
    expect(taken).toMatchObject({ status: 409, body: { code: 'busy' } })
    const gone = await scene.ask(`DELETE /v1/services/embedder/i-1?lease=${body.lease}`)
    expect(gone.status).toBe(200)
    expect(await find('status=any')).toBe(0)
    const late = await scene.ask(`PUT /v1/services/embedder/i-1?lease=${body.lease}`)
    expect(late).toMatchObject({ status: 410, body: { code: 'lost', reason: 'revoked' } })
  })

  it('keeps it, with its state', async () => {
    const check = { ttl: '30s' }
    const { body } = await scene.ask('POST /v1/services/painter', { check, weight: 2 })
    const path = `PUT /v1/services/painter/${body.id}?lease=${body.lease}`
    expect((await scene.ask(path)).body).toEqual({ lease: body.lease, remaining: 15_000 })
    const shown = async () => (await leasehold.registry.find('painter', { status: 'any' }))[0]
    await scene.ask(`${path}&status=critical&note=no+paint&load=0.5`)
    expect(await shown()).toMatchObject({ status: 'critical', note: 'no paint', load: 0.5 })
    expect((await scene.ask('GET /v1/services/painter')).body.instances).toEqual([])
    await scene.ask(`${path}&status=passing`)
    expect(await shown()).toMatchObject({ status: 'passing', load: 0.5, weight: 2 })
    await scene.ask(`${path}&maintenance=cleaning`)
    expect(await shown()).toMatchObject({ status: 'maintenance', note: 'cleaning' })
    await scene.ask(`${path}&maintenance=off`)
    expect(await shown()).toMatchObject({ status: 'passing' })
    const noted = await scene.ask(`${path}&note=x`)
    expect(noted).toMatchObject({ status: 400, body: { code: 'invalid-argument' } })
  })

  it('reports the faults of a registration', async () => {
    const bad = await scene.ask('POST /v1/services/a%2Fb', {})
    expect(bad).toMatchObject({ status: 400, body: { detail: expect.stringContaining('slash') } })
    const other = await scene.ask('POST /v1/locks/k1')
    const path = `PUT /v1/services/painter/x?lease=${other.body.lease}`
    expect(await scene.ask(path)).toMatchObject({ status: 404 })
  })
})

describe('pools over HTTP', () => {
  const definition = {
    resources: [
      { name: 'gpu-0', memory: 80 },
      { name: 'gpu-1', memory: 40 },
    ],
  }
  const take = (query: string) => scene.ask(`POST /v1/pools/gpu/permits?tenant=vision&${query}`)

  it('are not there before they are defined', async () => {
    expect(await scene.ask('GET /v1/pools/gpu')).toMatchObject({ status: 404 })
    expect(await take('')).toMatchObject({ status: 404, body: { code: 'claim-not-found' } })
  })

  it('are defined once, and otherwise only by force', async () => {
    const { status, body } = await scene.ask('PUT /v1/pools/gpu', definition)
    expect([status, body.resources.length]).toEqual([200, 2])
    expect((await scene.ask('PUT /v1/pools/gpu', definition)).status).toBe(200)
    const more = { resources: [...definition.resources, { name: 'gpu-2' }] }
    const other = await scene.ask('PUT /v1/pools/gpu', more)
    expect(other).toMatchObject({
      status: 400,
      body: { detail: expect.stringMatching(/a different definition/) },
    })
    expect((await scene.ask('GET /v1/pools/gpu')).body.resources).toHaveLength(2)
    const forced = await scene.ask('PUT /v1/pools/gpu?replace=true', more)
    expect(forced.body.resources).toHaveLength(3)
    await scene.ask('PUT /v1/pools/gpu?replace=true', definition)
  })

  it('give permits that are extended and returned, and counted in the usage record', async () => {
    const { status, body } = await take('where=memory+%3E%3D+80&ttl=10m&kind=train')
    expect(status).toBe(201)
    expect(body).toMatchObject({ resources: ['gpu-0'], tenant: 'vision', kind: 'train' })
    expect(body.remaining).toBeGreaterThan(500_000)
    const busy = await take('where=memory+%3E%3D+80')
    expect(busy).toMatchObject({ status: 409, body: { code: 'busy' } })
    const { resources } = (await scene.ask('GET /v1/pools/gpu')).body
    expect(resources[0].permits).toMatchObject([{ token: body.token, tenant: 'vision' }])
    const extended = await scene.ask(`PUT /v1/pools/gpu/permits/${body.lease}`)
    expect(extended).toMatchObject({ status: 200, body: { lease: body.lease } })
    const returned = await scene.ask(`DELETE /v1/pools/gpu/permits/${body.lease}`)
    expect(returned.status).toBe(200)
    expect(await scene.store.read({ key: 'pool/gpu/r/gpu-0' })).toMatchObject({ count: 0 })
    const { claims } = await scene.store.read({ key: 'pool/gpu/books' })
    expect(claims.map(({ value }) => value).join()).toContain('"vision"')
    const again = await scene.ask(`PUT /v1/pools/gpu/permits/${body.lease}`)
    expect(again).toMatchObject({ status: 410, body: { code: 'lost' } })
  })

  it('are waited for in a queue, which a broken connection leaves', async () => {
    const held = await take('count=2')
    const sent = await scene.begin('POST', '/v1/pools/gpu/permits?tenant=late&wait=20s')
    await scene.claims('pool/gpu/line', 1)
    await closed(sent)
    await scene.claims('pool/gpu/line', 0)
    const late = await take('wait=20ms')
    expect(late).toMatchObject({ status: 409, body: { code: 'timeout' } })
    const waiting = take('wait=20s')
    await scene.claims('pool/gpu/line', 1)
    await scene.ask(`DELETE /v1/pools/gpu/permits/${held.body.lease}`)
    const { status, body } = await waiting
    expect(status).toBe(201)
    await scene.ask(`DELETE /v1/pools/gpu/permits/${body.lease}`)
  })

  it('leave permits to their holders when the server stops, and the next one knows them', async () => {
    const { store } = scene
    const one = await Scene.open({ store })
    const { body } = await one.ask('POST /v1/pools/gpu/permits?tenant=long&ttl=1h')
    await one.server.close()
    const key = `pool/gpu/r/${body.resources[0]}`
    expect((await store.read({ key })).claims[0]).toMatchObject({ token: body.token })
    const two = await Scene.open({ store })
    const path = `/v1/pools/gpu/permits/${body.lease}`
    expect(await two.ask(`PUT ${path}`)).toMatchObject({ body: { remaining: 3_600_000 } })
    expect((await two.ask(`DELETE ${path}`)).status).toBe(200)
    expect((await store.read({ key })).count).toBe(0)
    await two.server.close()
  })
})

describe('sessions over HTTP', () => {
  it('live across processes, are saved and end', async () => {
    const made = await scene.ask('POST /v1/sessions/main', { user: 'ada', data: { n: 1 } })
    expect(made).toMatchObject({ status: 201, body: { user: 'ada', data: { n: 1 } } })
    const path = `/v1/sessions/main/${made.body.id}`
    const session = await leasehold.sessions().get(made.body.id)
    expect(session?.data).toEqual({ n: 1 })
    expect((await scene.ask(`PUT ${path}`, { data: [2] })).body.data).toEqual([2])
    expect((await scene.ask(`GET ${path}?touch=true`)).body.data).toEqual([2])
    const listed = await scene.ask('GET /v1/sessions/main?user=ada')
    expect(listed.body.sessions).toMatchObject([{ ref: made.body.ref, data: [2] }])
    expect(JSON.stringify(listed.body)).not.toContain(made.body.id)
    expect((await scene.ask(`DELETE ${path}?why=logout`)).body).toEqual({ ended: true })
    expect((await scene.ask(`DELETE ${path}`)).body).toEqual({ ended: false })
    expect(await scene.ask(`GET ${path}`)).toMatchObject({ status: 404 })
  })

  it('of a user all end together, but for one', async () => {
    const make = async () =>
      (await scene.ask('POST /v1/sessions/main', { user: 'ben', data: null })).body.id
    const [one] = [await make(), await make(), await make()]
    const { body } = await scene.ask(`DELETE /v1/sessions/main?user=ben&except=${one}`)
    expect(body).toEqual({ ended: 2 })
    expect((await scene.ask(`GET /v1/sessions/main/${one}`)).status).toBe(200)
  })
})
