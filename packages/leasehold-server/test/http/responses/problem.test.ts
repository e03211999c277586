import { memoryStore } from 'leasehold/memory'
import { ERRORS, type ErrorCode, LeaseholdError, type LeaseStore } from 'leasehold/port'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { KeyReused, NotAvailable, problemOf, STATUS } from '../../../src/http/responses/problem.ts'
import { changedStore } from '../../setup/changed-store.ts'
import { Scene } from '../scene.ts'

const codes = Object.keys(ERRORS) as ErrorCode[]

describe('problems', () => {
  it('have a status for every code, and for no other', () => {
    expect(Object.keys(STATUS).sort()).toEqual([...codes, 'busy', 'not-found', 'key-reused'].sort())
    for (const status of Object.values(STATUS)) {
      expect(status).toBeGreaterThanOrEqual(400)
      expect(status).toBeLessThan(600)
    }
  })

  it('are 504 if the engine did not answer a read, and 409 if a wait in a queue ended', async () => {
    expect(problemOf(new LeaseholdError('timeout', 'late')).status).toBe(504)
    expect(problemOf(new NotAvailable('timeout', 'late')).status).toBe(409)
    const changes: Partial<LeaseStore> = {}
    const frozen = await Scene.open({ store: changedStore(memoryStore(), changes) })
    changes.read = () => Promise.reject(new LeaseholdError('timeout', 'the engine did not answer'))
    for (const path of ['/v1/keys/x', '/v1/locks/x', '/v1/services/x', '/v1/caches/c/x']) {
      const { status, body } = await frozen.ask(`GET ${path}`)
      expect([path, status, body.code, body.outcome]).toEqual([path, 504, 'timeout', 'refused'])
    }
    await frozen.close()
  })

  it.each(codes)('give the message of the error for %s', (code) => {
    const details = { reason: 'revoked', by: 'ops', why: 'x' } as const
    const problem = problemOf(new LeaseholdError(code, 'a text', details))
    const { outcome, meaning } = ERRORS[code]
    expect(problem).toEqual({
      type: `/docs#${code}`,
      title: meaning,
      status: STATUS[code],
      detail: 'a text',
      code,
      outcome,
      ...details,
    })
  })

  it('never answer an unknown outcome with a status that means a refusal', () => {
    const unknown = codes.filter((code) => ERRORS[code].outcome === 'unknown')
    expect(unknown.map((code) => STATUS[code])).toEqual(unknown.map(() => 503))
  })

  it('hide the details of an internal error, and report that the outcome is unknown', () => {
    const problem = problemOf(new TypeError('secret of the house'))
    expect(problem).toMatchObject({ status: 503, code: 'unknown-outcome', outcome: 'unknown' })
    expect(JSON.stringify(problem)).not.toContain('secret')
  })

  it('say that an Idempotency-Key names another request', () => {
    const problem = problemOf(new KeyReused('use another'))
    expect(problem).toMatchObject({ status: 422, code: 'key-reused', detail: 'use another' })
  })

  it('name the holder, if there is one', () => {
    const first = { key: 'k', token: 7, lease: '1.1', holder: 'ada', mode: 'exclusive' } as const
    const ahead = [{ key: 'k', count: 1, first: { ...first, claimedAt: 1, until: 2 } }]
    const problem = problemOf(new NotAvailable('busy', 'no', ahead))
    expect(problem).toMatchObject({ status: 409, holder: 'ada', token: 7, until: 2 })
  })
})

describe('a missing address', () => {
  let scene: Scene
  beforeAll(async () => {
    scene = await Scene.open()
  })
  afterAll(() => scene.close())

  it.each([
    'GET /v1/nope',
    'GET /v1/nope?x=1',
    'POST /nope',
    'GET /nope',
    'GET /dashboard/nope',
    'GET /dashboard/index-nope.js',
    'DELETE /docs',
    'GET /v2/locks/a',
  ])('is a problem too: %s', async (what) => {
    const { status, type, body, headers } = await scene.ask(what)
    const [name] = what.split('?')
    expect(status).toBe(404)
    expect(type).toMatch(/^application\/problem\+json/)
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(body).toEqual({
      type: '/docs#not-found',
      title: 'The path does not exist.',
      status: 404,
      detail: `${name} does not exist; see /docs`,
      code: 'not-found',
      outcome: 'refused',
    })
  })

  it('is explained at /docs', async () => {
    const { body } = await scene.ask('GET /docs')
    expect(body).toContain('id="not-found"')
  })

  it('is reported only to authenticated callers, below /v1', async () => {
    const known = await Scene.open()
    await known.token('ada', 'all:')
    expect((await known.ask('GET /v1/nope')).status).toBe(401)
    expect((await known.ask('GET /nope')).status).toBe(404)
    await known.close()
  })
})
