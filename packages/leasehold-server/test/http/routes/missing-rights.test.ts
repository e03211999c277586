import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { VERBS } from '../../../src/access/index.ts'
import { Scene } from '../scene.ts'

const POOL = { resources: [{ name: 'gpu-0' }] }
/** Requests that use recipes. */
const RECIPES: readonly (readonly [string, unknown?])[] = [
  ['PUT /v1/pools/gpu', POOL],
  ['PUT /v1/pools/gpu?replace=true', POOL],
  ['GET /v1/pools/gpu'],
  ['POST /v1/pools/gpu/permits?tenant=a'],
  ['POST /v1/pools/gpu/permits?tenant=a&wait=10ms'],
  ['GET /v1/services'],
  ['GET /v1/services/api'],
  ['POST /v1/services/api', { address: 'http://localhost:1' }],
  ['GET /v1/sessions/main?user=a'],
  ['POST /v1/sessions/main', { user: 'a', data: 1 }],
  ['DELETE /v1/sessions/main?user=a'],
]

describe('a recipe over HTTP', () => {
  let scene: Scene

  beforeAll(async () => {
    scene = await Scene.open()
    await scene.ask('PUT /v1/pools/gpu', POOL)
  })

  afterAll(() => scene.close())

  for (const verb of ['read', 'watch']) {
    it(`refuses with 403 everything about pools to a caller that may not ${verb} them`, async () => {
      const rights = VERBS.filter((each) => each !== verb).join(',')
      const token = await scene.token(`no-${verb}`, `${rights}:`)
      const headers = { authorization: `Bearer ${token}` }
      for (const query of ['', '?replace=true']) {
        const answer = await scene.ask(`PUT /v1/pools/new${query}`, POOL, headers)
        expect(answer).toMatchObject({ status: 403, body: { code: 'forbidden' } })
      }
      expect(await scene.store.read({ key: 'pool/new/definition' })).toMatchObject({ count: 0 })
      const status = await scene.ask('GET /v1/pools/gpu', undefined, headers)
      expect(status).toMatchObject({ status: 403, body: { code: 'forbidden' } })
      const take = 'POST /v1/pools/gpu/permits?tenant=a'
      expect(await scene.ask(take, undefined, headers)).toMatchObject({ status: 403 })
      expect(await scene.ask(`${take}&wait=1m`, undefined, headers)).toMatchObject({ status: 403 })
    })
  }

  it('defines a pool for a caller with rights to that pool only, in its name', async () => {
    const token = await scene.token('owner', `${VERBS.join(',')}:pool/mine/`)
    const headers = { authorization: `Bearer ${token}` }
    expect((await scene.ask('PUT /v1/pools/mine', POOL, headers)).status).toBe(200)
    const { claims } = await scene.store.read({ key: 'pool/mine/definition' })
    expect(claims).toMatchObject([{ holder: 'owner' }])
  })

  for (const verb of VERBS) {
    it(`immediately answers a caller that lacks the right to ${verb}`, async () => {
      const rights = VERBS.filter((each) => each !== verb).join(',')
      const token = await scene.token(`without-${verb}`, `${rights}:`)
      for (const [what, body] of RECIPES) {
        const answer = await scene.ask(what, body, { authorization: `Bearer ${token}` })
        expect([200, 201, 400, 403, 409], `${what}: ${JSON.stringify(answer.body)}`).toContain(
          answer.status,
        )
      }
    }, 300_000)
  }

  it('immediately answers a caller without any right', async () => {
    const token = await scene.token('powerless', 'read:nothing/')
    for (const [what, body] of RECIPES) {
      const answer = await scene.ask(what, body, { authorization: `Bearer ${token}` })
      expect(answer.status, what).toBe(403)
    }
  }, 300_000)
})
