import { describe, expect, it } from 'vitest'
import {
  type Complaint,
  checkClaim,
  checkGrant,
  checkKey,
  checkQuery,
  checkRelease,
  checkRenew,
  checkRevoke,
  checkToken,
  checkUpdate,
  checkWatch,
  DEFAULT_LIMITS,
} from '../../src/port/index.ts'

const LIMITS = {
  ...DEFAULT_LIMITS,
  ttlMin: 10,
  ttlMax: 1000,
  keyLength: 8,
  nameLength: 6,
  labels: 2,
  valueBytes: 9,
  keysPerClaim: 3,
  claimsPerKey: 4,
  renewBatch: 2,
  page: 5,
}

type Check = (request: never) => Complaint

const grant: Check = (request) => checkGrant(request, LIMITS)
const claim: Check = (request) => checkClaim(request, LIMITS)
const release: Check = (request) => checkRelease(request, LIMITS)
const update: Check = (request) => checkUpdate(request, LIMITS)
const renew: Check = (request) => checkRenew(request, LIMITS)
const revoke: Check = (request) => checkRevoke(request, LIMITS)
const query: Check = (request) => checkQuery(request, LIMITS)
const watch: Check = (request) => checkWatch(request, () => {}, LIMITS)
const key: Check = (request) => checkKey(request, LIMITS)

const lease = { holder: 'me', ttl: 100 }
const onLease = { lease: '1.1' }
const claims = [{ key: 'a' }]
const twelve = 'x'.repeat(12)
const half = '\ud800'

/** These values are at the edge of what is refused below. */
const ACCEPTED: readonly [string, Check, unknown][] = [
  ['a lease', grant, lease],
  ['a holder of the longest name', grant, { ...lease, holder: 'x'.repeat(6) }],
  ['the shortest ttl', grant, { ...lease, ttl: 10 }],
  ['the longest ttl', grant, { ...lease, ttl: 1000 }],
  ['an infinite ttl', grant, { ...lease, ttl: Infinity }],
  ['no grace', grant, { ...lease, grace: 0 }],
  ['the longest grace', grant, { ...lease, grace: 1000 }],
  ['a life as long as the ttl', grant, { ...lease, maxLife: 100 }],
  ['a finite life of an infinite ttl', grant, { ...lease, ttl: Infinity, maxLife: 50 }],
  ['an infinite life', grant, { ...lease, maxLife: Infinity }],
  ['a parent', grant, { ...lease, parent: '1.1' }],
  ['as many labels as there may be', grant, { ...lease, labels: { a: '', b: 'xxxxxx' } }],
  ['no labels', grant, { ...lease, labels: {} }],
  ['claims with the grant', grant, { ...lease, claims }],
  ['a request id', grant, { ...lease, request: 'x' }],
  ['a grant that may wait', grant, { ...lease, claims, ifFree: false }],
  ['a claim', claim, { ...onLease, claims }],
  ['a claim only if free', claim, { ...onLease, claims, ifFree: true }],
  [
    'as many keys as there may be',
    claim,
    { ...onLease, claims: [{ key: 'a' }, { key: 'b' }, { key: 'c' }] },
  ],
  ['an exclusive claim', claim, { ...onLease, claims: [{ key: 'a', mode: 'exclusive' }] }],
  ['a shared claim', claim, { ...onLease, claims: [{ key: 'a', mode: 'shared' }] }],
  ['the smallest limit', claim, { ...onLease, claims: [{ key: 'a', mode: 'shared', limit: 1 }] }],
  ['the largest limit', claim, { ...onLease, claims: [{ key: 'a', mode: 'shared', limit: 4 }] }],
  ['the largest value', claim, { ...onLease, claims: [{ key: 'a', value: 'x'.repeat(9) }] }],
  [
    'a value of three bytes a character',
    claim,
    { ...onLease, claims: [{ key: 'a', value: '€€€' }] },
  ],
  ['a release', release, { ...onLease, keys: ['a'], token: 1 }],
  ['a release of many', release, { ...onLease, keys: ['a', 'b', 'c'], token: 1 }],
  ['an update', update, { ...onLease, key: 'a', token: 1, value: 'v' }],
  ['an update to nothing', update, { ...onLease, key: 'a', token: 1 }],
  ['nothing to renew', renew, []],
  ['as many to renew as there may be', renew, ['1.1', '2.2']],
  ['a revoke of a lease', revoke, { target: onLease }],
  ['a revoke of a lease later', revoke, { target: onLease, after: 1000, by: 'me', why: '' }],
  ['a revoke of children', revoke, { target: { parent: '1.1' }, after: 0 }],
  ['a revoke of a key', revoke, { target: { key: 'a' } }],
  ['a revoke of a claim', revoke, { target: { key: 'a', token: 5 } }],
  ['a revoke of everything', revoke, { target: { prefix: '' } }],
  ['a key', query, { key: 'a' }],
  ['a prefix', query, { prefix: '', after: '', limit: 5 }],
  ['no limit of a page', query, { prefix: 'a', limit: undefined }],
  ['a prefix of one page', query, { prefix: 'a', limit: 1 }],
  ['a lease', query, onLease],
  ['all leases', query, { leases: true }],
  ['the leases after one', query, { leases: true, after: '1.1' }],
  ['a history', query, { history: 'a' }],
  ['a watch of a lease', watch, onLease],
  ['a watch of a prefix', watch, { prefix: '' }],
  ['a watch from the beginning', watch, { prefix: 'a', from: 0 }],
  ['a key of one character', key, 'a'],
  ['the longest key', key, 'x'.repeat(8)],
  ['a key with a space', key, ' '],
  ['a key with the last printable character', key, '~'],
  ['a key of a whole pair', key, '😀'],
  ['a key of the letters beside surrogates', key, '\ud7ff\ue000'],
]

const REFUSED: readonly [string, Check, unknown, string][] = [
  ['not an object', grant, null, 'grant is null'],
  ['not an object', grant, 'x', 'grant is "x"'],
  ['no holder', grant, { ttl: 100 }, 'holder is undefined'],
  ['an empty holder', grant, { ...lease, holder: '' }, 'holder is empty'],
  ['a holder that is too long', grant, { ...lease, holder: 'x'.repeat(7) }, 'has 7 characters'],
  ['half a character', grant, { ...lease, holder: half }, 'holder is not well-formed'],
  ['no ttl', grant, { holder: 'me' }, 'ttl is missing'],
  ['a short ttl', grant, { ...lease, ttl: 9 }, 'ttl is 9ms'],
  ['a negative ttl', grant, { ...lease, ttl: -1 }, 'the minimum is 10ms'],
  [
    'a long ttl',
    grant,
    { ...lease, ttl: 1001 },
    'the maximum is 1s. Use a shorter ttl, or Infinity',
  ],
  ['a ttl that is a string', grant, { ...lease, ttl: '1s' }, 'ttl is "1s"'],
  ['a ttl that is NaN', grant, { ...lease, ttl: Number.NaN }, 'ttl is NaN'],
  ['a grace that is a string', grant, { ...lease, grace: '5' }, 'grace is "5"'],
  ['a negative grace', grant, { ...lease, grace: -1 }, 'grace is -1'],
  [
    'an infinite grace',
    grant,
    { ...lease, grace: Infinity },
    'grace is infinite; the maximum is 1s',
  ],
  ['a short life', grant, { ...lease, maxLife: 99 }, 'maxLife 99ms is shorter'],
  ['a long life', grant, { ...lease, maxLife: 1001 }, 'maxLife is 1001ms'],
  ['a life that is not a number', grant, { ...lease, maxLife: 'x' }, 'maxLife is "x"'],
  ['an empty parent', grant, { ...lease, parent: '' }, 'parent is ""'],
  ['a parent that is not an id', grant, { ...lease, parent: 5 }, 'parent is 5'],
  ['labels that are a string', grant, { ...lease, labels: 'x' }, 'labels is "x"'],
  [
    'too many labels',
    grant,
    { ...lease, labels: { a: '', b: '', c: '' } },
    '3 labels; the maximum is 2',
  ],
  ['a label that is not a string', grant, { ...lease, labels: { a: 5 } }, 'the label "a" is 5'],
  [
    'a second label that is not a string',
    grant,
    { ...lease, labels: { a: '', b: 5 } },
    'label "b" is 5',
  ],
  ['a label without a name', grant, { ...lease, labels: { '': 'x' } }, "a label's name is empty"],
  ['a long label', grant, { ...lease, labels: { a: 'x'.repeat(7) } }, 'has 7 characters'],
  ['wrong claims', grant, { ...lease, claims: [] }, 'claims is empty'],
  ['an empty request id', grant, { ...lease, request: '' }, 'request is empty'],
  ['a flag that is a number', grant, { ...lease, claims, ifFree: 0 }, 'ifFree is 0'],
  ['a flag that is a string', claim, { ...onLease, claims, ifFree: 'no' }, 'ifFree is "no"'],
  ['not an object', claim, 5, 'claim is 5'],
  ['no lease', claim, { claims }, 'lease is undefined'],
  ['no claims', claim, onLease, 'claims is undefined'],
  ['no array of claims', claim, { ...onLease, claims: { length: 1 } }, 'claims is an object'],
  ['no claims in it', claim, { ...onLease, claims: [] }, 'claims is empty'],
  ['a claim that is null', claim, { ...onLease, claims: [null] }, 'claim is null'],
  [
    'one key twice',
    claim,
    { ...onLease, claims: [{ key: 'a' }, { key: 'a' }] },
    '"a" is given twice',
  ],
  ['an unknown mode', claim, { ...onLease, claims: [{ key: 'a', mode: 'x' }] }, 'mode is "x"'],
  [
    'a limit of an exclusive claim',
    claim,
    { ...onLease, claims: [{ key: 'a', limit: 2 }] },
    'but the claim is exclusive',
  ],
  [
    'a limit of 0',
    claim,
    { ...onLease, claims: [{ key: 'a', mode: 'shared', limit: 0 }] },
    'limit is 0',
  ],
  [
    'a limit of 5',
    claim,
    { ...onLease, claims: [{ key: 'a', mode: 'shared', limit: 5 }] },
    'limit is 5',
  ],
  [
    'half a limit',
    claim,
    { ...onLease, claims: [{ key: 'a', mode: 'shared', limit: 1.5 }] },
    'limit is 1.5',
  ],
  ['a claim without a key', claim, { ...onLease, claims: [{}] }, 'key is undefined'],
  [
    'a value that is not a string',
    claim,
    { ...onLease, claims: [{ key: 'a', value: 5 }] },
    'value is 5',
  ],
  [
    'a value that is half a character',
    claim,
    { ...onLease, claims: [{ key: 'a', value: half }] },
    'the value is not well-formed',
  ],
  ['an empty request id', claim, { ...onLease, claims, request: '' }, 'request is empty'],
  ['not an object', release, null, 'release is null'],
  ['no lease', release, { keys: ['a'], token: 1 }, 'lease is undefined'],
  ['no array of keys', release, { ...onLease, keys: 'a', token: 1 }, 'keys is "a"'],
  ['no keys', release, { ...onLease, keys: [], token: 1 }, 'keys is empty'],
  ['one key twice', release, { ...onLease, keys: ['a', 'a'], token: 1 }, '"a" is given twice'],
  ['a key that is a number', release, { ...onLease, keys: ['a', 5], token: 1 }, 'key is 5'],
  ['no token', release, { ...onLease, keys: ['a'] }, 'token is undefined'],
  [
    'an empty request id',
    release,
    { ...onLease, keys: ['a'], token: 1, request: '' },
    'request is empty',
  ],
  ['not an object', update, undefined, 'update is undefined'],
  ['no lease', update, { key: 'a', token: 1 }, 'lease is undefined'],
  ['no key', update, { ...onLease, token: 1 }, 'key is undefined'],
  ['no token', update, { ...onLease, key: 'a' }, 'token is undefined'],
  ['a wrong value', update, { ...onLease, key: 'a', token: 1, value: {} }, 'value is an object'],
  [
    'an empty request id',
    update,
    { ...onLease, key: 'a', token: 1, request: '' },
    'request is empty',
  ],
  ['no array to renew', renew, '1.1', 'leases is "1.1"'],
  ['an empty lease to renew', renew, ['1.1', ''], 'lease is ""'],
  ['not an object', revoke, 5, 'revoke is 5'],
  ['no target', revoke, {}, 'target is undefined'],
  ['a target that names nothing', revoke, { target: {} }, 'exactly one of'],
  ['two targets', revoke, { target: { lease: '1.1', key: 'a' } }, 'not lease and key'],
  [
    'three targets',
    revoke,
    { target: { parent: '1.1', prefix: '', key: 'a' } },
    'not parent and prefix and key',
  ],
  ['an empty lease', revoke, { target: { lease: '' } }, 'lease is ""'],
  ['an empty parent', revoke, { target: { parent: '' } }, 'parent is ""'],
  ['a wrong prefix', revoke, { target: { prefix: 5 } }, 'prefix is 5'],
  ['an empty key', revoke, { target: { key: '' } }, 'key is empty'],
  ['a wrong token', revoke, { target: { key: 'a', token: 0 } }, 'token is 0'],
  ['a key later', revoke, { target: { key: 'a' }, after: 5 }, 'after is 5, but claims'],
  ['a prefix later', revoke, { target: { prefix: 'a' }, after: 0 }, 'after is 0, but claims'],
  ['a negative delay', revoke, { target: onLease, after: -1 }, 'after is -1'],
  ['an infinite delay', revoke, { target: onLease, after: Infinity }, 'after is infinite'],
  ['a wrong name', revoke, { target: onLease, by: 5 }, 'by is 5'],
  ['a wrong reason', revoke, { target: onLease, why: 'x'.repeat(7) }, 'why "xxxxxxx" has 7'],
  ['an empty request id', revoke, { target: onLease, request: '' }, 'request is empty'],
  ['not an object', query, 'a', 'query is "a"'],
  ['a query for nothing', query, {}, 'a query must have'],
  ['an empty key', query, { key: '' }, 'key is empty'],
  ['a wrong prefix', query, { prefix: null }, 'prefix is null'],
  ['a wrong start', query, { prefix: '', after: 5 }, 'after is 5'],
  ['an empty lease', query, { lease: '' }, 'lease is ""'],
  ['an empty history', query, { history: '' }, 'key is empty'],
  ['leases that are not wanted', query, { leases: false }, 'leases is false'],
  ['leases after nothing', query, { leases: true, after: '' }, 'after is ""'],
  ['a page of nothing', query, { prefix: '', limit: 0 }, 'limit is 0'],
  ['a page that is too large', query, { prefix: '', limit: 6 }, 'limit is 6'],
  ['half a page', query, { leases: true, limit: 1.5 }, 'limit is 1.5'],
  ['not an object', watch, null, 'target is null'],
  ['nothing', watch, {}, 'a watch must have'],
  ['an empty lease', watch, { lease: '' }, 'lease is ""'],
  ['a wrong prefix', watch, { prefix: 5 }, 'prefix is 5'],
  ['a negative revision', watch, { prefix: '', from: -1 }, 'from is -1'],
  ['half a revision', watch, { prefix: '', from: 0.5 }, 'from is 0.5'],
  ['a key that is not a string', key, 5, 'key is 5'],
  ['an empty key', key, '', 'key is empty'],
  ['a key that is too long', key, 'x'.repeat(9), 'has 9 characters'],
  ['a control character', key, 'a\u001f', 'control character'],
  ['another control character', key, '\u007fa', 'control character'],
  ['the first half of a character', key, '\ud800', 'half a character'],
  ['the second half of a character', key, 'a\udfff', 'half a character'],
]

const TOO_MANY: readonly [string, Check, unknown][] = [
  [
    'keys in a claim',
    claim,
    { ...onLease, claims: ['a', 'b', 'c', 'd'].map((name) => ({ key: name })) },
  ],
  ['keys in a release', release, { ...onLease, keys: ['a', 'b', 'c', 'd'], token: 1 }],
  ['leases to renew', renew, ['1', '2', '3']],
  ['bytes in a value', update, { ...onLease, key: 'a', token: 1, value: 'x'.repeat(10) }],
  ['bytes in few characters', update, { ...onLease, key: 'a', token: 1, value: '€€€€' }],
  ['bytes in a large value', update, { ...onLease, key: 'a', token: 1, value: twelve }],
]

describe('the checks of arguments', () => {
  it.each(ACCEPTED)('accept %s', (_name, check, request) => {
    expect(check(request as never)).toBeUndefined()
  })

  it.each(REFUSED)('refuse %s', (_name, check, request, message) => {
    const complaint = check(request as never)
    expect(complaint?.message).toContain(message)
    const isLimit = /^labels has/.test(complaint!.message)
    expect(complaint?.code).toBe(isLimit ? 'limit-exceeded' : 'invalid-argument')
  })

  it.each(TOO_MANY)('refuse too many %s, as a limit', (_name, check, request) => {
    expect(check(request as never)?.code).toBe('limit-exceeded')
  })

  it('use integer limits, with ten years as the longest ttl', () => {
    for (const [name, limit] of Object.entries(DEFAULT_LIMITS)) {
      expect(Number.isInteger(limit) && limit > 0, name).toBe(true)
    }
    expect(DEFAULT_LIMITS.ttlMax).toBe(10 * 365 * 24 * 3_600_000)
    expect(DEFAULT_LIMITS.valueBytes).toBe(65_536)
  })

  it('list what a target may name, and nothing else if it names nothing', () => {
    expect(revoke({ target: {} } as never)?.message).toBe(
      'a revoke must have exactly one of lease, parent, prefix, key',
    )
  })

  it('refuse a watch without an observer', () => {
    const complaint = checkWatch({ prefix: '' }, 5 as never, LIMITS)
    expect(complaint?.message).toContain('observer is 5')
  })

  it.each([1, Number.MAX_SAFE_INTEGER])('accept the token %d', (token) => {
    expect(checkToken(token)).toBeUndefined()
  })

  it.each([0, -1, 1.5, 2 ** 53, '1', undefined])('refuse the token %s', (token) => {
    expect(checkToken(token as number)?.code).toBe('invalid-argument')
  })

  it('skip the characters of a known key, unless it is not a string', () => {
    const known = (name: string) => name === 'far too long' || name === '5'
    const request = { ...onLease, claims: [{ key: 'far too long' }] }
    expect(checkClaim(request, LIMITS, known)).toBeUndefined()
    expect(checkClaim(request, LIMITS)?.code).toBe('invalid-argument')
    const released = { ...onLease, keys: ['far too long'], token: 1 }
    expect(checkRelease(released, LIMITS, known)).toBeUndefined()
    expect(checkRelease(released, LIMITS)?.code).toBe('invalid-argument')
    const wrong = { ...onLease, keys: [5 as unknown as string], token: 1 }
    expect(checkRelease(wrong, LIMITS, () => true)?.code).toBe('invalid-argument')
  })
})
