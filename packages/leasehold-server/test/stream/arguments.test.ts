import { memoryStore } from 'leasehold/memory'
import type { LeaseStore } from 'leasehold/port'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseRight } from '../../src/access/index.ts'
import { createServer, type LeaseServer } from '../../src/index.ts'
import { RawStream } from './raw-stream.ts'

/** Values that are wrong for most arguments: a test leaves out the right ones. */
const WRONG: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1.5,
  '',
  [],
  {},
  { toString: 1 },
  [[]],
  [null],
]

const TEXT = 'text'
const LEASE = 'lease'
const KEY = 'key'
const SPAN = 'span'
const TOKEN = 'token'
const FLAG = 'flag'

/** Which of the wrong values are right here. */
const RIGHT: Readonly<Record<string, readonly unknown[]>> = {
  [TEXT]: [],
  [LEASE]: [],
  [KEY]: [],
  prefix: [''],
  why: [''],
  value: [''],
  [SPAN]: [0, 1.5],
  endless: [null, 0, 1.5],
  ttl: [null],
  [TOKEN]: [],
  [FLAG]: [true],
  oneOrZero: [0],
  revision: [0],
  limit: [],
  mode: [],
  leases: [[]],
  keys: [],
  claims: [],
  labels: [{}],
  object: [],
  true: [true],
}

interface Argument {
  readonly operation: string
  readonly name: string
  readonly kind: string
  /** The message, with this as the argument. */
  readonly message: (value: unknown) => readonly unknown[]
}

const grant = { holder: 'me', ttl: 60_000 }
const field = (
  operation: string,
  fields: Readonly<Record<string, string>>,
  right: object,
  wrap: (request: object) => unknown = (request) => request,
): Argument[] =>
  Object.entries(fields).map(([name, kind]) => ({
    ...{ operation, name, kind },
    message: (value) => [operation, wrap({ ...right, [name]: value })],
  }))
const place = (
  operation: string,
  kinds: readonly (readonly [name: string, kind: string])[],
  right: readonly unknown[],
): Argument[] =>
  kinds.map(([name, kind], at) => ({
    ...{ operation, name, kind },
    message: (value) => [operation, ...right.slice(0, at), value, ...right.slice(at + 1)],
  }))
const SPEC = { key: KEY, mode: 'mode', limit: 'limit', value: 'value' }
const shared = { key: 'k', mode: 'shared' }

const ARGUMENTS: readonly Argument[] = [
  ...place('grant', [['request', 'object']], [grant]),
  ...field('grant', { holder: TEXT, ttl: 'ttl', grace: SPAN, maxLife: 'endless' }, grant),
  ...field('grant', { parent: LEASE, labels: 'labels', claims: 'claims' }, grant),
  ...field('grant', { ifFree: FLAG, request: TEXT }, { ...grant, claims: [{ key: 'k' }] }),
  ...field('grant', SPEC, shared, (claim) => ({ ...grant, claims: [claim] })),
  ...place(
    'claim',
    [
      ['lease', LEASE],
      ['claims', 'claims'],
      ['ifFree', 'oneOrZero'],
      ['request', TEXT],
    ],
    ['1.1', ['k'], 0, 'once'],
  ),
  ...Object.entries(SPEC).map(([name, kind]) => ({
    ...{ operation: 'claim', name, kind },
    message: (value: unknown) => ['claim', '1.1', [{ ...shared, [name]: value }], 0],
  })),
  ...place(
    'release',
    [
      ['lease', LEASE],
      ['token', TOKEN],
      ['keys', 'keys'],
      ['request', TEXT],
    ],
    ['1.1', 1, ['k'], 'once'],
  ),
  ...place('renew', [['leases', 'leases']], [['1.1']]),
  ...place('tie', [['leases', 'leases']], [['1.1']]),
  ...place('update', [['request', 'object']], []),
  ...field(
    'update',
    { lease: LEASE, key: KEY, token: TOKEN, value: 'value', request: TEXT },
    { lease: '1.1', key: 'k', token: 1, value: 'v' },
  ),
  ...place('revoke', [['request', 'object']], []),
  ...field(
    'revoke',
    { target: 'object', by: 'why', why: 'why', after: SPAN, request: TEXT },
    {
      target: { lease: '1.1' },
      why: 'test',
    },
  ),
  ...field('revoke', { lease: LEASE }, {}, (target) => ({ target, why: 'test' })),
  ...field('revoke', { parent: LEASE }, {}, (target) => ({ target, why: 'test' })),
  ...field('revoke', { prefix: 'prefix' }, {}, (target) => ({ target, why: 'test' })),
  ...field('revoke', { key: KEY, token: TOKEN }, { key: 'k' }, (target) => ({
    target,
    why: 'test',
  })),
  ...place('read', [['query', 'object']], []),
  ...field('read', { key: KEY }, {}),
  ...field('read', { prefix: 'prefix', after: 'prefix', limit: 'limit' }, { prefix: '' }),
  ...field('read', { lease: LEASE, limit: 'limit' }, { lease: '1.1' }),
  ...field('read', { history: KEY }, {}),
  ...field('read', { leases: 'true', after: LEASE }, { leases: true }),
  ...field('read', { key: TEXT, history: TEXT }, { lease: '1.1' }),
  ...place('watch', [['target', 'object']], []),
  ...field('watch', { prefix: 'prefix', from: 'revision' }, { prefix: '' }),
  ...field('watch', { lease: LEASE }, {}),
  ...field('watch', { prefix: TEXT }, { lease: '1.1' }),
]

let inner: LeaseStore
let open: LeaseServer
let guarded: LeaseServer
const streams = new Map<string, RawStream>()

beforeAll(async () => {
  inner = memoryStore()
  open = await createServer({ store: inner, port: 0 })
  streams.set('everybody', await RawStream.greeted(open.url, 'one', { tied: 0 }))
  const own = memoryStore()
  guarded = await createServer({ store: own, port: 0 })
  const rights = [parseRight('all:')]
  const token = await guarded.access.tokens.create({ name: 'root', rights })
  streams.set('a token', await RawStream.greeted(guarded.url, 'two', { token, tied: 0 }))
})

afterAll(async () => {
  await open.close()
  await guarded.close()
})

let ids = 0
const refused = (id: number) => [id, 0, 'invalid-argument', expect.stringMatching(/./)]
const interrupted = (id: number) => [
  'notice',
  id,
  { type: 'interrupted', error: { code: 'invalid-argument', message: expect.any(String) } },
]

describe.each(['everybody', 'a token'])('on a stream of %s', (who) => {
  it.each(
    ARGUMENTS.map((argument) => [`${argument.operation} ${argument.name}`, argument] as const),
  )(
    'every wrong value of %s is refused with invalid-argument',
    async (_title, { operation, kind, message }) => {
      const stream = streams.get(who)!
      const right = new Set(RIGHT[kind]!.map((value) => JSON.stringify(value)))
      for (const value of WRONG.filter((each) => !right.has(JSON.stringify(each)))) {
        const id = ++ids
        const answer = await stream.ask(id, ...message(value))
        const expected = operation === 'watch' ? interrupted(id) : refused(id)
        expect(answer, JSON.stringify(value)).toEqual(expected)
      }
      expect(stream.socket.readyState).toBe(stream.socket.OPEN)
    },
  )
})
