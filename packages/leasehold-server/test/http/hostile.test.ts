import { connect } from 'node:net'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { ROUTES } from '../../src/http/routes/index.ts'
import { Scene } from './scene.ts'

let scene: Scene
beforeAll(async () => {
  scene = await Scene.open({ http: { bodyBytes: 4096, longPoll: 20 } })
})
afterAll(() => scene.close())

afterEach(async () => {
  const { status, body } = await scene.ask('GET /v1/keys/somebody')
  expect([status, body.count], 'the others are served').toEqual([200, 0])
  expect((await scene.ask('GET /healthz')).status).toBe(200)
})

describe('a page of another origin', () => {
  it.each(['http://evil.example', 'null', 'https://127.0.0.1:1', 'nonsense'])(
    'changes nothing: %s',
    async (origin) => {
      for (const what of ['POST /v1/locks/o', 'DELETE /v1/keys?prefix=', 'PUT /v1/leases/1.1']) {
        const { status, body, headers } = await scene.ask(what, undefined, { origin })
        expect([status, body.code]).toEqual([403, 'forbidden'])
        expect(headers.get('access-control-allow-origin')).toBeNull()
      }
      expect((await scene.store.read({ key: 'o' })).count).toBe(0)
    },
  )

  it('is named in the refusal by the first 100 characters of its origin', async () => {
    const origin = `http://${'e'.repeat(93)}`
    const { body } = await scene.ask('POST /v1/locks/o', undefined, { origin: `${origin}.example` })
    expect(body.detail).toContain(`a page of the origin ${origin} may`)
  })

  it('is offered no CORS, and one of our own may', async () => {
    const asked = await scene.ask('OPTIONS /v1/keys', undefined, { origin: 'http://evil.example' })
    expect(asked.status).toBeGreaterThanOrEqual(400)
    const { origin } = new URL(scene.server.url)
    const own = await scene.ask('POST /v1/locks/own-origin', undefined, { origin })
    expect(own.status).toBe(201)
  })
})

describe('requests that are wrong in form', () => {
  it.each([
    ['a body that is too large', 'x'.repeat(5000), 'application/json', 413, 'limit-exceeded'],
    ['no JSON', '{', 'application/json', 400, 'invalid-argument'],
    ['another type', 'a=b', 'application/x-www-form-urlencoded', 415, 'invalid-argument'],
    ['an empty body', '', 'application/json', 400, 'invalid-argument'],
    ['a poisoned body', '{"__proto__":{"ttl":1}}', 'application/json', 400, 'invalid-argument'],
    ['no object', '[]', 'application/json', 400, 'invalid-argument'],
    ['an unknown field', '{"ttl":"1s","tll":2}', 'application/json', 400, 'invalid-argument'],
    [
      'a number instead of a string',
      '{"ttl":"1s","holder":5}',
      'application/json',
      400,
      'invalid-argument',
    ],
  ])('are refused for %s, as a problem', async (_name, body, type, status, code) => {
    const answer = await scene.ask('POST /v1/leases', body, { 'content-type': type })
    expect([answer.status, answer.body.code]).toEqual([status, code])
    expect(answer.type).toMatch(/^application\/problem\+json/)
    expect(answer.body.detail).not.toBe('')
  })

  it('are refused for a missing resource, and for an invalid address', async () => {
    for (const [what, status, code] of [
      ['GET /v1/nothing', 404, 'not-found'],
      ['PATCH /v1/leases', 404, 'not-found'],
      ['GET /v1/keys/%zz', 400, 'invalid-argument'],
      ['POST /v1/locks/', 400, 'invalid-argument'],
    ] as const) {
      const answer = await scene.ask(what)
      expect([what, answer.status, answer.body.code]).toEqual([what, status, code])
    }
  })

  it('are refused for a body that the route would ignore', async () => {
    const { status, body } = await scene.ask('POST /v1/locks/bodied', { ttl: '5s' })
    expect([status, body.code]).toEqual([400, 'invalid-argument'])
    expect(body.detail).toMatch(/takes no body.*use the query, \?ttl=…&wait=…$/)
    expect((await scene.store.read({ key: 'bodied' })).count).toBe(0)
    expect((await scene.ask('POST /v1/locks/bodied', {})).status).toBe(201)
  })

  it('are refused for headers that are too large', async () => {
    const { status } = await scene.ask('GET /v1/keys', undefined, { 'x-long': 'x'.repeat(40_000) })
    expect(status).toBe(431)
  })

  it('are disconnected if they are not HTTP', async () => {
    const { port, hostname } = new URL(scene.server.url)
    const socket = connect(Number(port), hostname)
    socket.end('\x00\x01 nonsense\r\n\r\n')
    let heard = ''
    for await (const chunk of socket) heard += chunk
    expect(heard).toMatch(/^HTTP\/1\.1 400/)
  })
})

describe('for any input', () => {
  const word = fc.oneof(
    fc.constantFrom('', '0', '-1', '30s', 'infinite', 'true', '1e999', '[]', '../..', 'NaN', '1.1'),
    fc.string({ maxLength: 30 }),
    fc.string({ unit: 'binary', maxLength: 30 }),
  )
  const names = [...new Set(ROUTES.flatMap(({ query = {} }) => Object.keys(query)))]
  const query = fc.array(fc.tuple(fc.oneof(fc.constantFrom(...names), word), word), {
    maxLength: 4,
  })
  const route = fc.constantFrom(...ROUTES.filter(({ answer }) => answer.type === undefined))

  /** Mostly a value that fits the schema. */
  const shaped = (example: unknown): fc.Arbitrary<unknown> => {
    if (Array.isArray(example)) return fc.array(fc.oneof(...example.map(shaped), fc.jsonValue()))
    if (typeof example !== 'object' || example === null) {
      return fc.oneof(fc.constant(example), word, fc.jsonValue())
    }
    const parts = Object.entries(example).map(([name, value]) => [name, shaped(value)])
    return fc.record(Object.fromEntries(parts), { requiredKeys: [] })
  }
  const asked = route.chain((it) =>
    fc.record({
      route: fc.constant(it),
      params: fc.array(word, { minLength: 3, maxLength: 3 }),
      query,
      body: it.body ? fc.oneof(shaped(it.body.example), fc.jsonValue()) : fc.constant(undefined),
    }),
  )

  it('is answered, never with a fault of ours', async () => {
    await fc.assert(
      fc.asyncProperty(asked, async ({ route: { method, path }, params, query, body }) => {
        let at = 0
        const url = path.replaceAll(/\{\w+\}/g, () => encodeURIComponent(wellFormed(params[at++]!)))
        const pairs = query.map(([name, value]): [string, string] => [
          wellFormed(name),
          wellFormed(value),
        ])
        const search = new URLSearchParams(pairs)
        const { status, body: said } = await scene.ask(`${method} ${url}?${search}`, body)
        const isFault = status >= 500 || said?.code === 'unknown-outcome'
        expect(isFault, `${status} ${JSON.stringify(said)}`).toBe(false)
        if (status >= 400) expect(said.code).toEqual(expect.any(String))
      }),
      { numRuns: 600 },
    )
  }, 120_000)
})

/** Skip input that no URL can contain. */
function wellFormed(text: string): string {
  return text.toWellFormed()
}
