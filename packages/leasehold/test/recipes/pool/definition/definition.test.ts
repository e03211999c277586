import { describe, expect, it } from 'vitest'
import {
  definitionFrom,
  definitionJson,
  definitionOf,
  type PoolDefinition,
  unitsOf,
  weightOf,
} from '../../../../src/recipes/pool/definition/definition.ts'
import {
  conditionsOf,
  conditionText,
  meets,
  type Where,
} from '../../../../src/recipes/pool/definition/where.ts'
import { keysOf } from '../../../../src/recipes/pool/pool-snapshot.ts'
import { noticeFrom, preemptedFrom } from '../../../../src/recipes/pool/preemption-request.ts'
import {
  permitJson,
  requestOf,
  storedPermit,
  storedWaiter,
  type TakeOptions,
  waiterJson,
} from '../../../../src/recipes/pool/request.ts'
import { EMPTY_RECORD, usageRecordFrom } from '../../../../src/recipes/pool/usage/usage.ts'

const invalid = (message: RegExp) =>
  expect.objectContaining({ code: 'invalid-argument', message: expect.stringMatching(message) })

const GPU = { name: 'gpu' }

describe('the definition of a pool', () => {
  it('is complete when it is published, with defaults', () => {
    expect(definitionOf({ resources: [GPU] })).toEqual({
      resources: [{ name: 'gpu', shares: 1, attributes: {} }],
      halfLife: 86_400_000,
      notice: 30_000,
      maxHold: 0,
    })
  })

  it('has the same JSON for the same pool, in any order of its parts', () => {
    const one = definitionOf({
      resources: [{ name: 'gpu', shares: 4, memory: 80, model: 'H100', spot: undefined }],
      tenants: { b: { weight: 2 }, a: {} },
      halfLife: '1h',
      notice: '5s',
      maxHold: '2h',
    })
    const other = definitionOf({
      maxHold: '2h',
      notice: '5s',
      halfLife: '1h',
      tenants: { a: { weight: 1 }, b: { weight: 2 } },
      resources: [{ model: 'H100', memory: 80, shares: 4, name: 'gpu' }],
    })
    expect(definitionJson(other)).toBe(definitionJson(one))
    expect(one).toEqual({
      resources: [{ name: 'gpu', shares: 4, attributes: { memory: 80, model: 'H100' } }],
      tenants: { a: 1, b: 2 },
      halfLife: 3600_000,
      notice: 5000,
      maxHold: 7200_000,
    })
    expect(definitionFrom(definitionJson(one))).toEqual(one)
  })

  it('gives a tenant the weight 1 by default', () => {
    const tenants = { a: undefined as never, b: {}, c: { weight: undefined } }
    const { tenants: weights } = definitionOf({ resources: [{ name: 'gpu' }], tenants })
    expect(weights).toEqual({ a: 1, b: 1, c: 1 })
  })

  it.each([undefined, '', 'no JSON', 'null', '5', '{}', '{"resources":5}'])(
    'is undefined if it is unreadable: %j',
    (text) => {
      expect(definitionFrom(text)).toBeUndefined()
    },
  )

  it.each<[string, unknown, RegExp]>([
    ['nothing', undefined, /the definition has no list of resources/],
    ['null', null, /the definition has no list of resources/],
    ['no list', { resources: {} }, /the definition has no list of resources/],
    ['none', { resources: [] }, /the pool has 0 resources/],
    ['a text', { resources: ['gpu'] }, /a resource is "gpu"/],
    ['a null', { resources: [null] }, /a resource is null/],
    ['no name', { resources: [{}] }, /^a resource's name is undefined/],
    ['a name with a slash', { resources: [{ name: 'a/b' }] }, /^a resource's name is "a\/b"/],
    ['a name too long', { resources: [{ name: 'a'.repeat(101) }] }, /use 1 to 100/],
    ['two of a name', { resources: [GPU, GPU] }, /two resources are named "gpu"/],
    ['no shares', { resources: [{ ...GPU, shares: 0 }] }, /"gpu" has shares 0/],
    ['parts of shares', { resources: [{ ...GPU, shares: 1.5 }] }, /"gpu" has shares 1.5/],
    ['too many shares', { resources: [{ ...GPU, shares: 101 }] }, /"gpu" has shares 101/],
    ['an object', { resources: [{ ...GPU, size: {} }] }, /"gpu" has size an object/],
    ['an endless number', { resources: [{ ...GPU, size: Infinity }] }, /"gpu" has size Infinity/],
    ['no tenants', { resources: [GPU], tenants: {} }, /the pool has 0 tenants/],
    ['a nameless tenant', { resources: [GPU], tenants: { '': {} } }, /^a tenant's name is ""/],
    ['no weight', { resources: [GPU], tenants: { a: { weight: 0 } } }, /"a" has weight 0/],
    ['a great weight', { resources: [GPU], tenants: { a: { weight: 1e7 } } }, /"a" has weight/],
    ['no weight at all', { resources: [GPU], tenants: { a: { weight: Number.NaN } } }, /NaN/],
    ['no half-life', { resources: [GPU], halfLife: 0 }, /^halfLife is 0ms/],
    ['an endless half-life', { resources: [GPU], halfLife: 'infinite' }, /^halfLife is infinite/],
    ['a strange half-life', { resources: [GPU], halfLife: 'soon' }, /^halfLife is "soon"/],
    ['an endless notice', { resources: [GPU], notice: 'infinite' }, /^notice is infinite/],
    ['a strange notice', { resources: [GPU], notice: 'soon' }, /^notice is "soon"/],
    ['a strange limit', { resources: [GPU], maxHold: 'soon' }, /^maxHold is "soon"/],
  ])('is refused with %s', (_, given, message) => {
    expect(() => definitionOf(given as PoolDefinition)).toThrow(invalid(message))
  })

  it('may reach its limits, and no more', () => {
    const resources = (count: number) => Array.from({ length: count }, (_, i) => ({ name: `${i}` }))
    expect(definitionOf({ resources: resources(1000) }).resources).toHaveLength(1000)
    expect(() => definitionOf({ resources: resources(1001) })).toThrow(invalid(/1001 resources/))
    const tenants = (count: number) =>
      Object.fromEntries(resources(count).map((it) => [it.name, {}]))
    expect(definitionOf({ resources: [GPU], tenants: tenants(256) }).tenants).toBeDefined()
    const many = { resources: [GPU], tenants: tenants(257) }
    expect(() => definitionOf(many)).toThrow(invalid(/257 tenants/))
    const largest = { ...GPU, shares: 100 }
    const heaviest = { a: { weight: 1e6 } }
    expect(definitionOf({ resources: [largest], tenants: heaviest }).tenants).toEqual({ a: 1e6 })
    const about = (length: number) => ({ resources: [{ ...GPU, about: 'x'.repeat(length) }] })
    const rest = definitionJson(definitionOf(about(0))).length
    expect(definitionJson(definitionOf(about(60_000 - rest)))).toHaveLength(60_000)
    expect(() => definitionOf(about(60_001 - rest))).toThrow(invalid(/60001 characters/))
  })

  it('has equal weights without a list, and no other tenants with one', () => {
    const anybody = definitionOf({ resources: [GPU] })
    expect(weightOf(anybody, 'a')).toBe(1)
    const some = definitionOf({ resources: [GPU], tenants: { a: { weight: 3 } } })
    expect([weightOf(some, 'a'), weightOf(some, 'b')]).toEqual([3, undefined])
    expect(weightOf(some, 'toString')).toBeUndefined()
  })

  it('has a key for each share of a resource', () => {
    expect(unitsOf('p', { name: 'gpu', shares: 1 })).toEqual(['pool/p/r/gpu'])
    expect(unitsOf('p', { name: 'gpu', shares: 2 })).toEqual(['pool/p/r/gpu/0', 'pool/p/r/gpu/1'])
    expect(keysOf('p')).toEqual({
      prefix: 'pool/p/',
      definition: 'pool/p/definition',
      queue: 'pool/p/line',
      records: 'pool/p/books',
      notice: 'pool/p/notice/',
    })
  })
})

describe('the conditions of a request', () => {
  it.each<[Where, string[]]>([
    ['memory >= 40', ['memory >= 40']],
    [' memory>=40 ', ['memory >= 40']],
    ['a = 1, b != 2 && c <= 3 and d > 4,e < 5', ['a = 1', 'b != 2', 'c <= 3', 'd > 4', 'e < 5']],
    ['a == x', ['a = x']],
    [`a = 'two words'`, ['a = two words']],
    ['a = "two words"', ['a = two words']],
    ['spot = true, old = false', ['spot = true', 'old = false']],
    [{ model: 'H100' }, ['model = H100']],
    [
      { memory: { atLeast: 1, atMost: 2, above: 3, below: 4 } },
      ['memory >= 1', 'memory <= 2', 'memory > 3', 'memory < 4'],
    ],
    [
      { model: { is: 'a', not: 'b', oneOf: ['c', 'd'] } },
      ['model = a', 'model != b', 'model in (c, d)'],
    ],
    [{ memory: { atLeast: undefined, atMost: 2 } }, ['memory <= 2']],
  ])('%j is read as conditions', (where, texts) => {
    expect(conditionsOf(where).map(conditionText)).toEqual(texts)
  })

  it('compare numbers only with numbers', () => {
    const above = { attribute: 'memory', is: '>=', to: 40 } as const
    expect(meets({ memory: 80 }, [above])).toBe(true)
    expect(meets({ memory: '80' }, [above])).toBe(false)
    expect(meets({ memory: 80 }, [{ ...above, to: '40' }])).toBe(false)
  })

  it('refuse a list with an invalid attribute', () => {
    const where = { model: { oneOf: ['H100', {} as never] } }
    expect(() => conditionsOf(where)).toThrow(invalid(/give an array of strings/))
  })

  it('distinguish numbers, booleans and strings', () => {
    const values = conditionsOf(`a = 5, b = true, c = false, d = x5, e = '5', f = "true"`)
    expect(values.map(({ to }) => to)).toEqual([5, true, false, 'x5', '5', 'true'])
    expect(conditionsOf(undefined)).toEqual([])
  })

  it.each<[Where, boolean]>([
    ['n = 5', true],
    ['n = 6', false],
    ['n != 6', true],
    ['n != 5', false],
    ['n >= 5', true],
    ['n >= 6', false],
    ['n <= 5', true],
    ['n <= 4', false],
    ['n > 4', true],
    ['n > 5', false],
    ['n < 6', true],
    ['n < 5', false],
    [{ n: { oneOf: [4, 5] } }, true],
    [{ n: { oneOf: [4, 6] } }, false],
    ['text > 1', false],
    ['missing >= 0', false],
    ['missing < 9', false],
    ['missing != 0', true],
    ['n = 5, n = 6', false],
  ])('%j is %s of { n: 5, text: "x" }', (where, expected) => {
    expect(meets({ n: 5, text: 'x' }, conditionsOf(where))).toBe(expected)
  })

  it.each<[unknown, RegExp]>([
    [5, /^where is 5/],
    [null, /^where is null/],
    ['memory around 40', /^where has "memory around 40"/],
    ['', /^where has ""/],
    ['x memory >= 40', /^where has/],
    ['memory >= 40 x', /^where has/],
    ['memory >= much', /^where "memory >= much" compares with "much"/],
    [{ memory: { least: 4 } }, /^where.memory has "least".*is, not, atLeast/],
    [{ memory: { toString: 4 } }, /^where.memory has "toString"/],
    [{ memory: null }, /^where.memory is null/],
    [{ memory: { is: {} } }, /^where.memory.is is an object/],
    [{ memory: { oneOf: 5 } }, /^where.memory.oneOf is 5/],
    [{ memory: { oneOf: [{}] } }, /^where.memory.oneOf is /],
    [{ memory: { atLeast: '5' } }, /^where "memory.atLeast" compares with "5"/],
    [{ memory: { atLeast: Number.NaN } }, /compares with NaN/],
    [Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`a${i}`, 1])), /^where has 33/],
  ])('%j is refused', (where, message) => {
    expect(() => conditionsOf(where as Where)).toThrow(invalid(message))
  })

  it('may be 32 conditions', () => {
    const where = Object.fromEntries(Array.from({ length: 32 }, (_, i) => [`a${i}`, 1]))
    expect(conditionsOf(where)).toHaveLength(32)
  })
})

describe('a request', () => {
  it('is complete after validation, with defaults', () => {
    expect(requestOf({ tenant: 't' })).toEqual({
      tenant: 't',
      kind: 'work',
      count: 1,
      shares: undefined,
      priority: 0,
      where: [],
      booked: 3600_000,
      preemptible: false,
      strategy: 'reservation',
      ttl: 3600_000,
      grace: undefined,
      wait: Infinity,
      signal: undefined,
    })
  })

  it('has the given ttl, or the default of its strategy', () => {
    const times = (options: Partial<TakeOptions>, learnt?: number) => {
      const { strategy, ttl, booked } = requestOf({ tenant: 't', ...options }, learnt)
      return [strategy, ttl, booked]
    }
    expect(times({ ttl: '2h' })).toEqual(['reservation', 7200_000, 7200_000])
    expect(times({ strategy: 'lock' })).toEqual(['lock', 30_000, 30_000])
    expect(times({ ttl: 'adaptive' })).toEqual(['lock', 30_000, 30_000])
    expect(times({ ttl: 'adaptive' }, 5000)).toEqual(['lock', 5000, 5000])
  })

  it.each<[string, unknown, RegExp]>([
    ['nothing', undefined, /^options is undefined/],
    ['null', null, /^options is null/],
    ['no tenant', {}, /^tenant is undefined/],
    ['a long tenant', { tenant: 't'.repeat(101) }, /^tenant is "t+/],
    ['an empty kind', { tenant: 't', kind: '' }, /^kind is ""/],
    ['none', { tenant: 't', count: 0 }, /^count is 0.*from 1 to 256/],
    ['parts', { tenant: 't', count: 1.5 }, /^count is 1.5/],
    ['too many', { tenant: 't', count: 257 }, /^count is 257/],
    ['no shares', { tenant: 't', shares: 0 }, /^shares is 0/],
    ['a low priority', { tenant: 't', priority: -1001 }, /^priority is -1001.*from -1000 to 1000/],
    ['a high priority', { tenant: 't', priority: 1001 }, /^priority is 1001/],
    ['a strange strategy', { tenant: 't', strategy: 'session' }, /^strategy is "session"/],
    [
      'a reservation with a learnt ttl',
      { tenant: 't', strategy: 'reservation', ttl: 'adaptive' },
      /^strategy is "reservation", but an adaptive ttl needs/,
    ],
    ['a strange wait', { tenant: 't', wait: 'soon' }, /^wait is "soon"/],
    ['a strange ttl', { tenant: 't', ttl: 'soon' }, /^ttl is "soon"/],
    ['a strange signal', { tenant: 't', signal: {} }, /^signal is an object/],
    ['no signal', { tenant: 't', signal: null }, /^signal is null/],
  ])('is refused with %s', (_, options, message) => {
    expect(() => requestOf(options as TakeOptions)).toThrow(invalid(message))
  })

  it('may reach its limits', () => {
    const tenant = 't'.repeat(100)
    const high = requestOf({ tenant, count: 256, shares: 256, priority: 1000 })
    expect(high).toMatchObject({ tenant, count: 256, shares: 256, priority: 1000 })
    expect(requestOf({ tenant: 't', priority: -1000 }).priority).toBe(-1000)
  })
})

describe('a stored value', () => {
  const place = { token: 5, holder: 'h', claimedAt: 7 }
  const request = requestOf({
    tenant: 't',
    kind: 'k',
    count: 2,
    shares: 3,
    priority: 4,
    where: 'a = 1',
    preemptible: true,
    ttl: 1000,
  })

  it('is parsed as written: a waiter and a permit', () => {
    const { tenant, kind, count, shares, priority, where, booked } = request
    const common = { token: 5, holder: 'h', since: 7, tenant, kind, priority, booked }
    const queued = storedWaiter({ ...place, value: waiterJson(request) })
    expect(queued).toEqual({ ...common, count, shares, where })
    const permit = storedPermit({ ...place, value: permitJson(request, 9) }, ['key'], 0.5)
    expect(permit).toEqual({ ...common, keys: ['key'], cost: 0.5, preemptible: true, waiter: 9 })
  })

  it.each([undefined, '', 'no JSON', 'null', '5', '{}', '{"tenant":5}'])(
    'is no waiter if it is unreadable: %j',
    (value) => {
      expect(storedWaiter({ ...place, value })).toBeUndefined()
    },
  )

  it('is a waiter or a permit with defaults if only the tenant is readable', () => {
    const odd = {
      tenant: 't',
      kind: 5,
      priority: 'a',
      count: 'b',
      shares: 'c',
      where: 'd',
      line: 'e',
    }
    const value = JSON.stringify({ ...odd, booked: 'f', preemptible: 1 })
    const common = { token: 5, holder: 'h', since: 7, tenant: 't', kind: 'work' }
    const none = { ...common, priority: 0, booked: 0 }
    expect(storedWaiter({ ...place, value })).toEqual({
      ...none,
      count: 1,
      shares: undefined,
      where: [],
    })
    const rest = { keys: ['key'], cost: 1, preemptible: false, waiter: undefined }
    expect(storedPermit({ ...place, value }, ['key'], 1)).toEqual({ ...none, ...rest })
    const unknown = storedPermit({ ...place, value: 'strange' }, ['key'], 1)
    expect(unknown).toEqual({ ...none, ...rest, tenant: '' })
  })

  it('is a notice, or nothing if it is unreadable', () => {
    const value = JSON.stringify({
      tenant: 't',
      priority: 5,
      period: 300,
      permit: 1,
      line: 2,
      keys: ['key'],
    })
    expect(noticeFrom('h', value)).toEqual({ by: 'h', tenant: 't', priority: 5, period: 300 })
    expect(preemptedFrom(value)).toEqual({ permit: 1, waiter: 2, keys: ['key'] })
    for (const text of [undefined, 'strange', '5', 'null']) {
      expect([noticeFrom('h', text), preemptedFrom(text)]).toEqual([undefined, undefined])
    }
    for (const part of [{ permit: 'x' }, { line: 'x' }, { keys: 'x' }]) {
      const odd = JSON.stringify({ permit: 1, line: 2, keys: [], ...part })
      expect(preemptedFrom(odd)).toBeUndefined()
    }
  })

  it('is an empty record if it is unreadable', () => {
    for (const text of [undefined, 'strange', 'null', '{}']) {
      expect(usageRecordFrom(text)).toEqual(EMPTY_RECORD)
    }
    const accounts = { t: { used: 1, at: 2 } }
    expect(usageRecordFrom(JSON.stringify({ accounts }))).toEqual({ accounts, open: [], kinds: {} })
  })
})
