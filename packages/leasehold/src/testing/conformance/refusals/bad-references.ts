import type { LeaseId, Token } from '../../../port/index.ts'
import type { BadCall, BadCallContext } from './bad-call.ts'

const INVALID = 'invalid-argument'

/** Invalid leases and tokens, and calls that name nothing. */
// long because it is a table, one row for each wrong call.
export function badReferences(): BadCall[] {
  const unknown: BadCall[] = (['claim', 'release', 'update', 'revoke', 'parent'] as const).flatMap(
    (what): BadCall[] => [
      {
        name: `${what}: a lease that never was`,
        code: 'lease-not-found',
        says: ['no-such-lease', /new one/],
        family: what === 'parent',
        call: (context) => withLease(context, what, 'no-such-lease'),
      },
      {
        name: `${what}: a lease that has ended`,
        code: 'lease-ended',
        says: ['revoked', 'admin', 'upgrade', /new one/],
        family: what === 'parent',
        call: (context) => withLease(context, what, context.ended),
      },
      {
        name: `${what}: a lease that is not a string`,
        code: INVALID,
        says: [/lease|parent/, '5', /id/],
        family: what === 'parent',
        call: (context) => withLease(context, what, 5 as unknown as LeaseId),
      },
    ],
  )
  return [
    ...unknown,
    {
      name: 'release: the token of an older grant',
      code: 'claim-not-found',
      says: [/token \d+/, /released|removed/],
      call: ({ store, lease, key, oldToken }) =>
        store.release({ lease, keys: [key], token: oldToken }),
    },
    {
      name: 'claim: replaces the token of an older grant',
      code: 'claim-not-found',
      says: [/token \d+/],
      call: ({ store, lease, key, oldToken }) =>
        store.claim({ lease, claims: [{ key, value: 'late' }], replaces: oldToken }),
    },
    {
      name: 'claim: both ifFree and replaces',
      code: 'invalid-argument',
      says: ['ifFree', 'replaces'],
      call: ({ store, lease, key, token }) =>
        store.claim({ lease, claims: [{ key }], ifFree: true, replaces: token }),
    },
    {
      name: 'update: the token of an older grant',
      code: 'claim-not-found',
      says: [/token \d+/],
      call: ({ store, lease, key, oldToken }) =>
        store.update({ lease, key, token: oldToken, value: 'late' }),
    },
    ...[0, -1, 1.5, '7', Number.NaN, undefined].map(
      (token): BadCall => ({
        name: `a token that is ${JSON.stringify(token) ?? 'missing'}`,
        code: INVALID,
        says: ['token', /integer/],
        call: ({ store, lease, key }) =>
          store.release({ lease, keys: [key], token: token as Token }),
      }),
    ),
    {
      name: 'leases to renew that are no array',
      code: INVALID,
      says: ['leases', 'array'],
      call: ({ store, lease }) => store.renew(lease as unknown as LeaseId[]),
    },
    ...(['grant', 'claim', 'release', 'update', 'revoke', 'read'] as const).map(
      (method): BadCall => ({
        name: `${method} of nothing`,
        code: INVALID,
        says: ['undefined', 'object'],
        call: ({ store }) => (store[method] as (nothing: undefined) => unknown)(undefined),
      }),
    ),
    {
      name: 'a revoke that names nothing',
      code: INVALID,
      says: ['lease', 'parent', 'prefix', 'key'],
      call: ({ store }) => store.revoke({ target: {} as { key: string } }),
    },
    {
      name: 'a read that names nothing',
      code: INVALID,
      says: ['key', 'prefix', 'lease', 'history'],
      call: ({ store }) => store.read({} as { key: string }),
    },
    {
      name: 'a watch that names nothing',
      code: INVALID,
      says: ['prefix', 'lease'],
      call: ({ store }) => store.watch({} as { prefix: string }, () => {}),
    },
  ]
}

function withLease(
  { store, key, token, scene }: BadCallContext,
  what: 'claim' | 'release' | 'update' | 'revoke' | 'parent',
  lease: LeaseId,
): unknown {
  if (what === 'claim') return store.claim({ lease, claims: [{ key: scene.key() }] })
  if (what === 'release') return store.release({ lease, keys: [key], token })
  if (what === 'update') return store.update({ lease, key, token, value: 'x' })
  if (what === 'revoke') return store.revoke({ target: { lease } })
  return store.grant({ holder: 'a', ttl: 600_000, parent: lease })
}
