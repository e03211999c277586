import type { GrantRequest, LeaseId, Limits } from '../../../port/index.ts'
import type { BadCall, BadCallContext } from './bad-call.ts'

const INVALID = 'invalid-argument'

/** A call with wrong types, as plain JavaScript can make it. */
function grant(context: BadCallContext, wrong: object): unknown {
  const request = { holder: 'alice', ttl: 600_000, ...wrong } as GrantRequest
  return context.store.grant(request)
}

function claim({ store, lease }: BadCallContext, claims: unknown): unknown {
  return store.claim({ lease, claims: claims as [] })
}

function claimKey(context: BadCallContext, key: unknown): unknown {
  return claim(context, [{ key }])
}

// long because it is a table, one row for each invalid call.
function timings(limits: Limits): BadCall[] {
  const ttl = (name: string, value: unknown, ...says: (string | RegExp)[]): BadCall => ({
    name: `a ttl that is ${name}`,
    code: INVALID,
    says: ['ttl', ...says],
    call: (context) => grant(context, { ttl: value }),
  })
  return [
    ttl('0', 0, '0', /minimum|at least/),
    ttl('negative', -5, '-5'),
    ttl('not a number', Number.NaN, 'NaN', /number of milliseconds/),
    ttl('a string', '30s', '30s', /number of milliseconds/),
    ttl('missing', undefined, /missing|undefined/),
    ttl('null', null, 'null'),
    {
      name: 'a ttl below the minimum of the store',
      code: INVALID,
      says: ['ttl', /minimum|at least/],
      call: (context) => grant(context, { ttl: context.store.guarantees.ttl.min * 0.9 }),
    },
    {
      name: 'a ttl above the maximum',
      code: INVALID,
      says: ['ttl', /maximum|at most/],
      call: (context) => grant(context, { ttl: context.store.guarantees.ttl.max * 1.1 }),
    },
    {
      name: 'a negative grace',
      code: INVALID,
      says: ['grace', '-1'],
      call: (context) => grant(context, { grace: -1 }),
    },
    {
      name: 'an infinite grace',
      code: INVALID,
      says: ['grace', /maximum|at most/],
      call: (context) => grant(context, { grace: Infinity }),
    },
    {
      name: 'a maximum life shorter than the ttl',
      code: INVALID,
      says: [/maxLife [\d.]+\w+/, /ttl [\d.]+\w+/],
      call: (context) => grant(context, { ttl: 600_000, maxLife: 300_000 }),
    },
    {
      name: 'a maximum life that is not a number',
      code: INVALID,
      says: ['maxLife', 'NaN'],
      call: (context) => grant(context, { maxLife: Number.NaN }),
    },
    {
      name: 'a break after a negative time',
      code: INVALID,
      says: ['after', '-1'],
      call: ({ store, lease }) => store.revoke({ target: { lease }, after: -1 }),
    },
    {
      name: 'a break with a period for claims, which have no deadline',
      code: INVALID,
      says: ['after', '1000', /lease/],
      call: ({ store, key }) => store.revoke({ target: { key }, after: 1000 }),
    },
    {
      name: 'a page that is empty',
      code: INVALID,
      says: ['limit', '0', String(limits.page)],
      call: ({ store, key }) => store.read({ key, limit: 0 }),
    },
    {
      name: 'a page that is too long',
      code: INVALID,
      says: ['limit', String(limits.page + 1), String(limits.page)],
      call: ({ store, key }) => store.read({ key, limit: limits.page + 1 }),
    },
    {
      name: 'a page of keys after something that is not a key',
      code: INVALID,
      says: ['after', '5', /string/],
      call: ({ store }) => store.read({ prefix: '', after: 5 as unknown as string }),
    },
    {
      name: 'a page of leases after something that is not a lease',
      code: INVALID,
      says: ['after', '5', /id/],
      call: ({ store }) => store.read({ leases: true, after: 5 as unknown as LeaseId }),
    },
    {
      name: 'a watch without an observer',
      code: INVALID,
      says: ['observer', 'undefined', /function/],
      call: ({ store }) => store.watch({ prefix: '' }, undefined as unknown as () => void),
    },
    {
      name: 'a watch from a negative revision',
      code: INVALID,
      says: ['from', '-1', /revision/],
      call: ({ store }) => store.watch({ prefix: '', from: -1 }, () => {}),
    },
  ]
}

// long because it is a table, one row for each invalid call.
function names(limits: Limits): BadCall[] {
  const key = (name: string, value: unknown, ...says: (string | RegExp)[]): BadCall => ({
    name: `a key that ${name}`,
    code: INVALID,
    says: ['key', ...says],
    call: (context) => claimKey(context, value),
  })
  const long = limits.nameLength + 1
  return [
    key('is empty', '', /empty/),
    key('is missing', undefined, 'undefined', /string/),
    key('is a number', 5, '5', /string/),
    key('is too long', 'k'.repeat(limits.keyLength + 1), `${limits.keyLength}`, '"kkk'),
    key('has a control character', 'a\nb', 'a\\nb', /control/),
    key('has a DEL', 'a\u007fb', /control/),
    key('is half a character', 'a\ud800', /Unicode/),
    {
      name: 'an empty key in a release',
      code: INVALID,
      says: ['key', /empty/],
      call: ({ store, lease, token }) => store.release({ lease, keys: [''], token }),
    },
    {
      name: 'an empty key in an update',
      code: INVALID,
      says: ['key', /empty/],
      call: ({ store, lease, token }) => store.update({ lease, key: '', token, value: 'x' }),
    },
    {
      name: 'an empty key in a read',
      code: INVALID,
      says: ['key', /empty/],
      call: ({ store }) => store.read({ key: '' }),
    },
    {
      name: 'a prefix with a control character',
      code: INVALID,
      says: ['prefix', /control/],
      call: ({ store }) => store.watch({ prefix: 'a\u0000' }, () => {}),
    },
    {
      name: 'a holder without a name',
      code: INVALID,
      says: ['holder', /empty/],
      call: (context) => grant(context, { holder: '' }),
    },
    {
      name: 'a holder whose name is too long',
      code: INVALID,
      says: ['holder', String(long), String(limits.nameLength)],
      call: (context) => grant(context, { holder: 'h'.repeat(long) }),
    },
    {
      name: 'a label that is not a string',
      code: INVALID,
      says: ['zone', '5', /string/],
      call: (context) => grant(context, { labels: { zone: 5 } }),
    },
    {
      name: 'too many labels',
      code: 'limit-exceeded',
      says: ['labels', String(limits.labels), String(limits.labels + 1)],
      call: (context) => grant(context, { labels: Object.fromEntries(numbers(limits.labels + 1)) }),
    },
    {
      name: 'a request id that is too long',
      code: INVALID,
      says: ['request', String(long), String(limits.nameLength)],
      call: (context) => grant(context, { request: 'r'.repeat(long) }),
    },
    {
      name: 'an empty request id',
      code: INVALID,
      says: ['request', /empty/],
      call: (context) => grant(context, { request: '' }),
    },
    {
      name: 'a reason that is too long',
      code: INVALID,
      says: ['why', String(long), String(limits.nameLength)],
      call: ({ store, lease }) => store.revoke({ target: { lease }, why: 'w'.repeat(long) }),
    },
  ]
}

function* numbers(count: number): Generator<[string, string]> {
  for (let at = 0; at < count; at++) yield [`label-${at}`, 'x']
}

// long because it is a table, one row for each invalid call.
function claimsOf(limits: Limits): BadCall[] {
  const big = 'ü'.repeat(Math.floor(limits.valueBytes / 2) + 1)
  return [
    {
      name: 'a value that is too large',
      code: 'limit-exceeded',
      says: ['value', String(Buffer.byteLength(big)), String(limits.valueBytes)],
      call: (context) => claim(context, [{ key: context.scene.key(), value: big }]),
    },
    {
      name: 'an update to a value that is too large',
      code: 'limit-exceeded',
      says: ['value', String(limits.valueBytes)],
      call: ({ store, lease, key, token }) => store.update({ lease, key, token, value: big }),
    },
    {
      name: 'a value that is not a string',
      code: INVALID,
      says: ['value', 'an object', /string/],
      call: (context) => claim(context, [{ key: context.scene.key(), value: {} }]),
    },
    {
      name: 'an unknown mode',
      code: INVALID,
      says: ['mode', 'both', 'exclusive', 'shared'],
      call: (context) => claim(context, [{ key: context.scene.key(), mode: 'both' }]),
    },
    {
      name: 'a limit on an exclusive claim',
      code: INVALID,
      says: ['limit', '2', 'exclusive', 'shared'],
      call: (context) => claim(context, [{ key: context.scene.key(), limit: 2 }]),
    },
    {
      name: 'a limit of 0',
      code: INVALID,
      says: ['limit', '0', '1'],
      call: (context) => claim(context, [{ key: context.scene.key(), mode: 'shared', limit: 0 }]),
    },
    {
      name: 'a limit that is not an integer',
      code: INVALID,
      says: ['limit', '1.5', 'integer'],
      call: (context) => claim(context, [{ key: context.scene.key(), mode: 'shared', limit: 1.5 }]),
    },
    {
      name: 'no claims at all',
      code: INVALID,
      says: ['claims', /empty/, 'at least one'],
      call: (context) => claim(context, []),
    },
    {
      name: 'claims that are not an array',
      code: INVALID,
      says: ['claims', 'array'],
      call: (context) => claim(context, 'all'),
    },
    {
      name: 'a key given twice in one claim',
      code: INVALID,
      says: ['key', 'twice', 'once'],
      call: (context) => claim(context, [{ key: context.key }, { key: context.key }]),
    },
    {
      name: 'a key given twice in one release',
      code: INVALID,
      says: ['key', 'twice'],
      call: ({ store, lease, key, token }) => store.release({ lease, keys: [key, key], token }),
    },
    {
      name: 'a release of no keys',
      code: INVALID,
      says: ['keys', /empty/],
      call: ({ store, lease, token }) => store.release({ lease, keys: [], token }),
    },
  ]
}

/** Values that are invalid in every state. */
export function badValues(limits: Limits): BadCall[] {
  return [...timings(limits), ...names(limits), ...claimsOf(limits)]
}
