import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Route } from '../../../src/http/route.ts'
import { ROUTES } from '../../../src/http/routes/index.ts'
import { Reader, Scene } from '../scene.ts'

// biome-ignore lint/suspicious/noExplicitAny: a document of any shape, until it is validated.
type Document = any

let scene: Scene
let document: Document
beforeEach(async () => {
  scene = await Scene.open()
  document = (await scene.ask('GET /openapi.json')).body
})
afterEach(() => scene.close())

/** The requirements of the example of an operation, and the names in it. */
type Named = Record<string, string | number>
const KEY = 'reports/2026-11'
const lock = async (): Promise<Named> => (await scene.ask(`POST /v1/locks/${KEY}`)).body
const lease = async (): Promise<Named> => (await scene.ask('POST /v1/leases', { ttl: '30s' })).body
const pool = async (): Promise<Named> => {
  await scene.ask('PUT /v1/pools/gpu', { resources: [{ name: 'gpu-0', memory: 80 }] })
  return {}
}
const permit = async (): Promise<Named> => {
  await pool()
  return (await scene.ask('POST /v1/pools/gpu/permits?tenant=vision')).body
}
const instance = async (): Promise<Named> =>
  (await scene.ask('POST /v1/services/embedder?id=i-1', { capabilities: ['embed'] })).body
const session = async (): Promise<Named> =>
  (await scene.ask('POST /v1/sessions/main', { user: 'ada', data: { cart: [] } })).body
const term = async (): Promise<Named> => {
  const { body } = await scene.ask('POST /v1/elections/scheduler?candidate=host-a&value=a')
  return body
}
const loader = async (): Promise<Named> => (await scene.ask('POST /v1/caches/prices/eur-usd')).body
const work = async (): Promise<Named> => (await scene.ask('POST /v1/once/report/2026-11')).body
const nothing = async (): Promise<Named> => ({})

const BEFORE: Record<string, () => Promise<Named>> = {
  readLock: lock,
  listElections: term,
  readElection: term,
  observeElection: term,
  campaign: nothing,
  keepTerm: term,
  resign: term,
  readCache: async () => {
    await scene.ask('PUT /v1/caches/prices/eur-usd', { value: 1.5 })
    return {}
  },
  loadCache: nothing,
  writeCache: loader,
  deleteFromCache: loader,
  readOnce: work,
  startOnce: nothing,
  finishOnce: work,
  forgetOnce: work,
  takeLock: nothing,
  keepLock: lock,
  releaseLock: lock,
  grantLease: nothing,
  listLeases: lock,
  renewLeases: lock,
  readLease: lock,
  renewLease: lock,
  revokeLease: lock,
  revokeChildren: lock,
  claimKeys: lease,
  releaseKeys: lock,
  listKeys: lock,
  revokePrefix: lock,
  readKey: lock,
  revokeKey: lock,
  updateValue: lock,
  readHistory: async () => {
    await scene.ask(`DELETE /v1/locks/${KEY}?lease=${(await lock())['lease']}`)
    return {}
  },
  watchEvents: nothing,
  listServices: instance,
  findInstances: instance,
  registerInstance: nothing,
  keepInstance: instance,
  deregisterInstance: instance,
  definePool: nothing,
  poolStatus: permit,
  takePermit: pool,
  extendPermit: permit,
  returnPermit: permit,
  createSession: nothing,
  listSessions: session,
  endSessions: session,
  getSession: session,
  saveSession: session,
  endSession: session,
}

/** The request that the description shows as an example. */
function exampleOf(path: string, method: string, known: Named) {
  const operation = document.paths[path][method]
  let url = path
  const query = new URLSearchParams()
  for (const { name, in: where, example, required } of operation.parameters ?? []) {
    // A lease or a token of an example must exist.
    const named = ['lease', 'token', 'id'].includes(name) && known[name]
    const value = named || example
    if (where === 'path') url = url.replace(`{${name}}`, String(value))
    if (where !== 'query' || value === undefined) continue
    expect(required && example === undefined, `${name} has an example`).toBe(false)
    for (const one of [value].flat()) query.append(name, String(one))
  }
  const body = operation.requestBody?.content['application/json'].example
  const text = body && JSON.stringify(body).replaceAll('17.42', String(known['lease']))
  return { what: `${method.toUpperCase()} ${url}?${query}`, body: text, operation }
}

describe('the description', () => {
  it('is OpenAPI 3.1', async () => {
    const validator = new Validator()
    const { valid, errors } = await validator.validate(document)
    expect(errors ?? []).toEqual([])
    expect([valid, validator.version]).toEqual([true, '3.1'])
    expect(document.openapi).toMatch(/^3\.1/)
  })

  it('is refused by its validator if it is wrong', async () => {
    const spoilt = structuredClone(document)
    spoilt.paths['/v1/keys'].get.responses = 'none'
    expect((await new Validator().validate(spoilt)).valid).toBe(false)
  })

  it('has every route that is served, and no other', () => {
    const described = Object.entries<Document>(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    )
    expect(described.sort()).toEqual(ROUTES.map(({ method, path }) => `${method} ${path}`).sort())
    const ids = ROUTES.map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids.sort()).toEqual(Object.keys(BEFORE).sort())
  })

  it.each(
    ROUTES.filter(({ answer }) => answer.type === undefined).map((it): [string, Route] => [
      it.id,
      it,
    ]),
  )('has an example of %s that works, and is answered as it says', async (id, { method, path }) => {
    const known = await BEFORE[id]!()
    const { what, body, operation } = exampleOf(path, method.toLowerCase(), known)
    const answer = await scene.ask(what, body)
    const said = operation.responses[answer.status]
    expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
    const ajv = new Ajv2020({ strict: false })
    ajv.addSchema(document, 'doc')
    const schema = rooted(said.content['application/json'].schema)
    const validate = ajv.compile(schema)
    validate(answer.body)
    expect(validate.errors ?? []).toEqual([])
  })

  it('has an example of the events that works', async () => {
    const { what } = exampleOf('/v1/events', 'get', {})
    const reader = await Reader.open(scene.server.url + what.split(' ')[1])
    expect((await reader.next())?.event).toBe('watching')
    reader.close()
  })

  it('is a page for people, which loads nothing from another host', async () => {
    const { status, headers, body } = await scene.ask('GET /docs')
    expect(status).toBe(200)
    expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'/)
    for (const { id } of ROUTES) expect(body).toContain(`id="${id}"`)
    expect(body).toContain('id="lease-ended"')
    expect(body).not.toMatch(/https?:\/\//)
    expect(body).not.toMatch(/<script/)
  })
})

/** References are to the description, from wherever the schema is. */
function rooted(schema: unknown): object {
  return JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"doc#/'))
}
