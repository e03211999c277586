import type { FastifyError } from 'fastify'
import { LeaseholdError } from 'leasehold/port'
import { describe, expect, it } from 'vitest'
import { NotAvailable } from '../../../src/http/responses/problem.ts'
import {
  asJson,
  problemFor,
  refuseBadRequest,
  sendProblem,
} from '../../../src/http/responses/responses.ts'

/** A reply that records its input. */
function reply() {
  const said = { status: 0, type: '', body: '', headers: {} as Record<string, string> }
  const it = {
    header: (name: string, value: string) => {
      said.headers[name] = value
      return it
    },
    code: (status: number) => {
      said.status = status
      return it
    },
    type: (type: string) => {
      said.type = type
      return it
    },
    send: (body: string) => {
      said.body = body
      return it
    },
  }
  return { said, it: it as never }
}

const framework = (code: string, statusCode: number | undefined) =>
  Object.assign(new Error('what it says'), { code, statusCode })

describe('a refusal by the framework', () => {
  it.each([
    ['FST_ERR_CTP_BODY_TOO_LARGE', 413, 'limit-exceeded'],
    ['FST_ERR_CTP_INVALID_JSON_BODY', 400, 'invalid-argument'],
    ['FST_ERR_ODD', 431, 'limit-exceeded'],
    ['FST_ERR_ODD', 499, 'invalid-argument'],
  ])('is a problem with its own status: %s %d', (code, status, name) => {
    const problem = problemFor(framework(code, status))
    expect(problem).toMatchObject({ status, code: name, detail: 'what it says' })
  })

  it('for the type of its body names the right type', () => {
    const { detail } = problemFor(framework('FST_ERR_CTP_INVALID_MEDIA_TYPE', 415))
    expect(detail).toMatch(/^what it says; .*content-type: application\/json$/)
  })

  it.each([
    ['a fault of the framework', framework('FST_ERR_ODD', 500)],
    ['a framework without a status', framework('FST_ERR_ODD', undefined)],
    ['an error of somebody else', framework('EACCES', 418)],
    ['an error without a code', Object.assign(new Error('x'), { statusCode: 418 })],
    ['nothing', undefined],
    ['null', null],
  ])('but not %s: that is a fault of ours', (_what, thrown) => {
    expect(problemFor(thrown)).toMatchObject({ status: 503, code: 'unknown-outcome' })
  })

  it('before it has found a route is a problem, with 400 if it has no status', () => {
    for (const [given, status] of [
      [414, 414],
      [undefined, 400],
    ] as const) {
      const { said, it } = reply()
      refuseBadRequest(framework('FST_ERR_BAD_URL', given) as FastifyError, {} as never, it)
      expect([said.status, said.type]).toEqual([status, 'application/problem+json'])
      expect(JSON.parse(said.body)).toMatchObject({ status, detail: 'what it says' })
    }
  })
})

describe('a request that is not as its schema says', () => {
  const refused = (first: object | undefined, validationContext?: string) =>
    problemFor({ validation: first === undefined ? [] : [first], validationContext })

  it.each([
    [
      { instancePath: '/limit', message: 'must be >= 1', params: {} },
      'querystring',
      'query/limit must be >= 1; see /docs',
    ],
    [
      { instancePath: '', message: 'must not', params: { additionalProperty: 'tll' } },
      'body',
      'body must not: "tll" is unknown; see /docs',
    ],
    [
      { message: 'must be one', params: { allowedValues: ['a', 'b'] } },
      undefined,
      'request must be one: a, b; see /docs',
    ],
    [undefined, 'body', 'body is wrong; see /docs'],
  ])('names the place and the fault: %j', (first, context, detail) => {
    expect(refused(first, context)).toMatchObject({
      ...{ status: 400, code: 'invalid-argument', detail },
    })
  })
})

describe('a problem', () => {
  const errorOf = (code: LeaseholdError['code']) => problemFor(new LeaseholdError(code, 'x'))
  it.each([
    [errorOf('unauthenticated'), { 'www-authenticate': 'Bearer' }],
    [errorOf('limit-exceeded'), { 'retry-after': '1' }],
    [errorOf('closed'), { 'retry-after': '1' }],
    [errorOf('forbidden'), {}],
  ])('is sent as problem JSON, with the next step: %j', (problem, headers) => {
    const { said, it } = reply()
    sendProblem(it, problem)
    expect(said).toEqual({
      ...{ status: problem.status, type: 'application/problem+json', headers },
      body: asJson(problem),
    })
    expect(said.body).toBe(`${JSON.stringify(problem)}\n`)
  })

  it('of a taken key names the first holder, if it is known', () => {
    const first = { key: 'k', token: 7, lease: '1.1', holder: 'ada', mode: 'exclusive' } as const
    const ahead = [{ key: 'k', count: 1, first: { ...first, claimedAt: 1, until: 2 } }]
    const busy = { outcome: 'busy', revision: 1, ahead } as const
    expect(problemFor(NotAvailable.from(busy))).toMatchObject({
      ...{ detail: 'ada holds k with token 7', holder: 'ada', ahead },
    })
    const unnamed = problemFor(NotAvailable.from({ ...busy, ahead: [] }))
    expect(unnamed).toMatchObject({ code: 'busy', detail: 'it is not free' })
    expect(unnamed).not.toHaveProperty('holder')
  })
})
