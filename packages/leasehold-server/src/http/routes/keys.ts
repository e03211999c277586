import type { LeaseId, Token } from 'leasehold/port'
import type { Route } from '../route.ts'
import { revoke } from './leases.ts'
import {
  answered,
  byPart,
  EXAMPLE,
  flag,
  given,
  keyPart,
  leasePart,
  limitPart,
  list,
  named,
  text,
  tokenPart,
  whole,
  whyPart,
} from './schemas.ts'

const prefix = {
  schema: text(),
  about: 'The prefix of the keys.',
  required: true,
  example: 'reports/',
} as const

export const KEYS: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/keys',
    id: 'listKeys',
    group: 'Keys',
    title: 'List the claimed keys of a prefix, page by page',
    query: {
      prefix: { ...prefix, required: false, about: 'Default: all keys.' },
      after: { schema: text(), about: 'The last key of the previous page.' },
      limit: limitPart,
    },
    answer: {
      status: 200,
      about: 'One page. If `more` is true, ask again after its last key.',
      schema: answered({ revision: whole(), keys: list(named('Key')), more: flag }),
    },
    handle: ({ store, query }) => store.read({ prefix: '', ...query }),
  },
  {
    method: 'DELETE',
    path: '/v1/keys',
    id: 'revokePrefix',
    group: 'Keys',
    title: 'Revoke all claims on the keys of a prefix',
    about: 'The leases stay. With access tokens, this needs the right `admin` and a `why`.',
    query: { prefix, by: byPart, why: whyPart },
    answer: {
      status: 200,
      about: 'Done. If `more` is true, ask again.',
      schema: named('Revoked'),
    },
    repeatable: true,
    handle: (call) => revoke(call, { prefix: call.query['prefix']! }),
  },
  {
    method: 'GET',
    path: '/v1/keys/{key}',
    rest: true,
    id: 'readKey',
    group: 'Keys',
    title: 'Read the holders and waiters of a key',
    params: { key: keyPart },
    query: { limit: limitPart },
    answer: {
      status: 200,
      about: 'The claims in queue order; the first `holders` of them hold.',
      schema: answered({
        revision: whole(),
        claims: list(named('Claim')),
        holders: whole(),
        count: whole(),
      }),
    },
    handle: ({ store, params, query }) => store.read({ key: params['key']!, ...query }),
  },
  {
    method: 'DELETE',
    path: '/v1/keys/{key}',
    rest: true,
    id: 'revokeKey',
    group: 'Keys',
    title: 'Revoke the claims on a key',
    about: 'With `token`, only that claim. The leases stay.',
    params: { key: keyPart },
    query: { token: { ...tokenPart, required: false }, by: byPart, why: whyPart },
    answer: { status: 200, about: 'Done.', schema: named('Revoked') },
    repeatable: true,
    handle: (call) => {
      const { token }: { token?: Token } = call.query
      return revoke(call, { key: call.params['key']!, token })
    },
  },
  {
    method: 'PUT',
    path: '/v1/values/{key}',
    rest: true,
    id: 'updateValue',
    group: 'Keys',
    title: 'Replace the value of a claim',
    params: { key: keyPart },
    query: { lease: leasePart, token: tokenPart },
    body: {
      schema: given({ value: text('Leave it out for no value.') }),
      example: { value: 'half done' },
    },
    answer: { status: 200, about: 'Done.', schema: named('Changed') },
    problems: [404, 410],
    repeatable: true,
    handle: ({ store, params, query, body, request }) => {
      const { lease, token }: { lease: LeaseId; token: Token } = query as never
      const { value } = body as { value?: string }
      return store.update({ lease, key: params['key']!, token, value, request })
    },
  },
  {
    method: 'GET',
    path: '/v1/history/{key}',
    rest: true,
    id: 'readHistory',
    group: 'Keys',
    title: 'Read the previous holders of a key, latest first',
    params: { key: { ...keyPart, example: EXAMPLE.key } },
    answer: {
      status: 200,
      about: 'The latest holds of the key.',
      schema: answered({ revision: whole(), tenures: list(named('Tenure')) }),
    },
    handle: ({ store, params }) => store.read({ history: params['key']! }),
  },
]
