import { memoryStore } from 'leasehold/memory'
import { LeaseholdError, type LeaseStore } from 'leasehold/port'
import { remoteStore } from 'leasehold/remote'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { parseRight } from '../../src/access/index.ts'
import { changedStore, Gate } from '../setup/changed-store.ts'
import { Scene, until } from './scene.ts'

describe('when an access token ends', () => {
  let store: LeaseStore
  let scene: Scene
  let changes: Partial<LeaseStore>
  let ann: { authorization: string }

  beforeEach(async () => {
    store = memoryStore()
    changes = {}
    const changed = changedStore(store, {
      revoke: (request) => (changes.revoke ?? store.revoke.bind(store))(request),
      grant: (request) => (changes.grant ?? store.grant.bind(store))(request),
    })
    scene = await Scene.open({ store: changed })
    await scene.token('root', 'all:')
    ann = { authorization: `Bearer ${await scene.token('ann', 'claim,read,watch:')}` }
  })
  afterEach(() => scene.close())

  const end = () => scene.server.access.tokens.revoke('ann', 'root')
  const hold = async (key: string) => {
    const granted = await store.grant({ holder: 'h', ttl: 60_000, claims: [{ key }] })
    if (granted.outcome === 'busy') throw new Error('busy')
    return granted
  }

  it.each([{}, { 'idempotency-key': 'one' }])(
    'the place of a lock that waits is gone before its caller is refused',
    async (more) => {
      await hold('k')
      const headers = { ...ann, ...more }
      const waiting = scene.ask('POST /v1/locks/k?ttl=1h&wait=20s', undefined, headers)
      const seen = waiting.then(async (answer) => ({ answer, now: await store.read({ key: 'k' }) }))
      await scene.claims('k', 2)
      await end()
      const { answer, now } = await seen
      expect(answer).toMatchObject({ status: 401, body: { outcome: 'refused' } })
      expect(now.count).toBe(1)
    },
  )

  it('the waiting claims of a request on several keys are removed, and held ones stay', async () => {
    await hold('b')
    const { body } = await scene.ask(
      'POST /v1/leases',
      { ttl: '1h', claims: [{ key: 'own' }] },
      ann,
    )
    const what = `POST /v1/leases/${encodeURIComponent(body.lease)}/claims?wait=20s`
    const waiting = scene.ask(what, { claims: [{ key: 'a' }, { key: 'b' }] }, ann)
    await scene.claims('b', 2)
    await end()
    expect(await waiting).toMatchObject({ status: 401 })
    const counts = ['own', 'a', 'b'].map(async (key) => (await store.read({ key })).count)
    expect(await Promise.all(counts)).toEqual([1, 0, 1])
  })

  it('the place of a claim is gone that no connection waits for', async () => {
    await hold('k')
    const body = { ttl: '1h', claims: [{ key: 'k' }] }
    const { status } = await scene.ask('POST /v1/leases', body, ann)
    expect(status).toBe(201)
    await end()
    await scene.claims('k', 1)
  })

  it('the waiting claim of a client on a stream is removed before it is disconnected', async () => {
    await hold('k')
    const token = ann.authorization.slice('Bearer '.length)
    const client = await remoteStore(scene.server.url, { accessToken: token })
    const granted = await client.grant({ holder: 'a', ttl: 3_600_000, claims: [{ key: 'k' }] })
    expect(granted).toMatchObject({ holds: false })
    const reported = new Promise((resolve) => {
      client.watch({ prefix: 'other/' }, ({ type }) => {
        if (type === 'interrupted') resolve(store.read({ key: 'k' }))
      })
    })
    await end()
    expect(await reported).toMatchObject({ count: 1 })
    await client.close()
  })

  it('a claim that was being made then is taken back, and then refused', async () => {
    const held = await hold('k')
    const gate = new Gate()
    let asked = false
    changes.grant = async (request) => {
      asked = true
      await gate.opened
      return store.grant(request)
    }
    const waiting = scene.ask('POST /v1/locks/k?ttl=1h&wait=20s', undefined, ann)
    await until(() => asked)
    await end()
    gate.open()
    expect(await waiting).toMatchObject({ status: 401, body: { outcome: 'refused' } })
    const { claims } = await store.read({ key: 'k' })
    expect(claims.map(({ lease }) => lease)).toEqual([held.lease])
  })

  it('its caller is not refused for sure while its place could not be taken back', async () => {
    await hold('k')
    const waiting = scene.ask('POST /v1/locks/k?ttl=1h&wait=20s', undefined, ann)
    await scene.claims('k', 2)
    changes.revoke = async (request) => {
      if ('lease' in request.target && request.why === 'access token revoked') {
        return store.revoke(request)
      }
      throw new LeaseholdError('storage-failed', 'the disk is away')
    }
    await end()
    expect(await waiting).toMatchObject({ status: 503, body: { outcome: 'unknown' } })
  })

  it('when the token runs out, too', async () => {
    await hold('k')
    const rights = [parseRight('claim:')]
    const expiresAt = performance.timeOrigin + performance.now() + 300
    const token = await scene.server.access.tokens.create({ name: 'bob', rights, expiresAt })
    const headers = { authorization: `Bearer ${token}` }
    const waiting = scene.ask('POST /v1/locks/k?ttl=1h&wait=20s', undefined, headers)
    const seen = waiting.then(async (answer) => ({ answer, now: await store.read({ key: 'k' }) }))
    const { answer, now } = await seen
    expect([answer.status, now.count]).toEqual([401, 1])
  })

  it('a permit that was being taken for a pool is free again', async () => {
    const pool = { resources: [{ name: 'g' }] }
    const root = { authorization: `Bearer ${await scene.token('two', 'all:')}` }
    expect((await scene.ask('PUT /v1/pools/gpu', pool, root)).status).toBe(200)
    const gate = new Gate()
    const granted = new Gate()
    let asked = false
    changes.grant = async (request) => {
      if (!request.claims?.some(({ key }) => key === 'pool/gpu/r/g')) return store.grant(request)
      asked = true
      await gate.opened
      const answer = await store.grant(request)
      granted.open()
      return answer
    }
    const taking = scene.ask('POST /v1/pools/gpu/permits?tenant=t&ttl=1h&wait=20s', undefined, ann)
    await until(() => asked)
    await end()
    const { status } = await taking
    gate.open()
    expect(status).toBe(401)
    await granted.opened
    expect((await store.read({ history: 'pool/gpu/r/g' })).tenures).toEqual([])
    await scene.claims('pool/gpu/r/g', 0)
  })
})

describe('a wait that is over', () => {
  it('leaves no claim behind, although its caller has used up its calls', async () => {
    const scene = await Scene.open()
    const quota = { callsPerSecond: 2 }
    const rights = [parseRight('claim:')]
    const token = await scene.server.access.tokens.create({ name: 'ann', rights, quota })
    const headers = { authorization: `Bearer ${token}` }
    await scene.store.grant({ holder: 'h', ttl: 60_000, claims: [{ key: 'k' }] })
    const waiting = scene.ask('POST /v1/locks/k?ttl=1h&wait=100ms', undefined, headers)
    await scene.claims('k', 2)
    expect(await waiting).toMatchObject({ status: 409, body: { code: 'timeout' } })
    expect((await scene.store.read({ key: 'k' })).count).toBe(1)
    await scene.close()
  })

  it('is not refused for sure while its place could not be taken back', async () => {
    const store = memoryStore()
    const revoke = () => Promise.reject(new LeaseholdError('storage-failed', 'the disk is away'))
    const scene = await Scene.open({ store: changedStore(store, { revoke }) })
    await store.grant({ holder: 'h', ttl: 60_000, claims: [{ key: 'k' }] })
    const { status, body } = await scene.ask('POST /v1/locks/k?ttl=1h&wait=20ms')
    expect([status, body.outcome]).toEqual([503, 'unknown'])
    await scene.close()
  })
})
