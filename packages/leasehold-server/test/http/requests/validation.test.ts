import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { querySchema, validators } from '../../../src/http/requests/validation.ts'
import { given, text, whole } from '../../../src/http/routes/schemas.ts'

describe('the schema of a query', () => {
  it('has the named fields, requires the required ones, and allows no others', () => {
    const schema = querySchema({
      lease: { schema: text(), about: '', required: true },
      limit: { schema: whole(1), about: '' },
    })
    expect(schema).toEqual({
      type: 'object',
      properties: { lease: text(), limit: whole(1) },
      required: ['lease'],
      additionalProperties: false,
    })
    expect(querySchema()).toEqual(given({}))
  })
})

describe('a check of input', () => {
  const warnings: unknown[] = []
  const { warn } = console
  beforeEach(() => {
    warnings.length = 0
    console.warn = (warning) => void warnings.push(warning)
  })
  afterEach(() => {
    console.warn = warn
  })

  const schema = given({ ttl: { type: ['string', 'number'] }, limit: whole(1) })
  const check = (httpPart: string, data: unknown) => {
    const validate = validators()({ schema, httpPart, method: 'GET', url: '/' })
    return { isValid: validate(data), errors: validate.errors }
  }

  it('converts a query by its schema, and does not convert a body', () => {
    const query = { limit: '5', ttl: '5s' }
    expect(check('querystring', query).isValid).toBe(true)
    expect(query.limit).toBe(5)
    expect(check('body', { limit: '5' }).isValid).toBe(false)
    expect(check('body', { limit: 5, ttl: 5 })).toEqual({ isValid: true, errors: null })
  })

  it('stops at the first that is wrong', () => {
    const { isValid, errors } = check('body', { limit: 0, ttl: true, more: 1 })
    expect([isValid, errors?.length]).toEqual([false, 1])
  })

  it('says nothing on the console of a value that may have several types', () => {
    check('body', { ttl: 5 })
    expect(warnings).toEqual([])
  })
})
