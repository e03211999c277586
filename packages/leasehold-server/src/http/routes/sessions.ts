import type { ListedSession, NewSession, Session } from 'leasehold'
import { LeaseholdError } from 'leasehold/port'
import type { Call, Parameter, Route } from '../route.ts'
import {
  answered,
  anything,
  duration,
  flag,
  given,
  list,
  text,
  time,
  whole,
  whyPart,
} from './schemas.ts'

const name: Parameter = {
  schema: text(),
  about: 'The session table; `main` is the usual name.',
  required: true,
  example: 'main',
}
const id: Parameter = {
  schema: text(),
  about: 'The secret id from its creation.',
  required: true,
  example: 'a-session',
}
const user: Parameter = { schema: text(), about: 'The user.', required: true, example: 'ada' }

const session = answered(
  {
    id: text('The secret id: give it only to its user.'),
    ref: text('A public name for the session.'),
    user: text(),
    data: anything,
    lease: text('Leases under this one end with the session.'),
  },
  'user',
)

const listed = answered(
  { ref: text(), user: text(), data: anything, lease: text(), createdAt: time, until: time },
  'user',
)

const ended = answered({ ended: flag })

export const SESSIONS: readonly Route[] = [
  {
    method: 'POST',
    path: '/v1/sessions/{name}',
    id: 'createSession',
    group: 'Sessions',
    title: 'Create a session',
    params: { name },
    body: {
      schema: given(
        {
          user: text('The user of the session.'),
          data: { description: 'Any JSON.' },
          ttl: {
            ...duration,
            description: 'How long it lives without use. Default: 20m.',
          },
          max: { ...duration, description: 'The longest total life. Default: 24h.' },
        },
        'data',
      ),
      example: { user: 'ada', data: { cart: ['book'] }, ttl: '20m' },
    },
    answer: { status: 201, about: 'The session is created.', schema: session },
    handle: (call) =>
      inSessions(call, async (sessions) =>
        shown(await sessions.create(call.body as NewSession<unknown>)),
      ),
  },
  {
    method: 'GET',
    path: '/v1/sessions/{name}',
    id: 'listSessions',
    group: 'Sessions',
    title: 'List the sessions of a user',
    params: { name },
    query: {
      user,
      limit: {
        schema: { ...whole(1), maximum: 10_000 },
        about: 'The most sessions. Default: 1000.',
      },
    },
    answer: {
      status: 200,
      about: 'The sessions, without their secret ids.',
      schema: answered({ sessions: list(listed) }),
    },
    handle: (call) =>
      inSessions(call, async (sessions) => {
        const { limit = 1000 }: { limit?: number } = call.query
        const found = await sessions.list(call.query['user']!, { limit })
        return { sessions: found.map(seen) }
      }),
  },
  {
    method: 'DELETE',
    path: '/v1/sessions/{name}',
    id: 'endSessions',
    group: 'Sessions',
    title: 'End all sessions of a user',
    params: { name },
    query: {
      user,
      except: { schema: text(), about: 'The id of a session to keep.' },
      why: { ...whyPart, example: 'password changed' },
    },
    answer: {
      status: 200,
      about: 'The number of ended sessions.',
      schema: answered({ ended: whole() }),
    },
    handle: (call) =>
      inSessions(call, async (sessions) => {
        const { user: whose, ...options }: { user: string; except?: string; why?: string } =
          call.query as never
        return { ended: await sessions.endAll(whose, options) }
      }),
  },
  {
    method: 'GET',
    path: '/v1/sessions/{name}/{id}',
    id: 'getSession',
    group: 'Sessions',
    title: 'Get a session, and mark it as used with `touch`',
    params: { name, id },
    query: {
      touch: {
        schema: flag,
        about: 'Restores its full ttl. Default: false.',
        example: true,
      },
    },
    answer: { status: 200, about: 'The session.', schema: session },
    problems: [404, 410],
    handle: (call) =>
      inOne(call, async (one) => {
        if (call.query['touch']) await one.touch()
        return shown(one)
      }),
  },
  {
    method: 'PUT',
    path: '/v1/sessions/{name}/{id}',
    id: 'saveSession',
    group: 'Sessions',
    title: 'Save the data of a session',
    about: 'Replaces the data; the last write wins. It also marks the session as used.',
    params: { name, id },
    body: {
      schema: given({ data: { description: 'Any JSON.' } }, 'data'),
      example: { data: { cart: [] } },
    },
    answer: { status: 200, about: 'The session.', schema: session },
    problems: [404, 410],
    handle: (call) =>
      inOne(call, async (one) => {
        await one.save((call.body as { data: unknown }).data)
        return shown(one)
      }),
  },
  {
    method: 'DELETE',
    path: '/v1/sessions/{name}/{id}',
    id: 'endSession',
    group: 'Sessions',
    title: 'End a session with everything under it',
    params: { name, id },
    query: { why: { ...whyPart, example: 'logged out' } },
    answer: { status: 200, about: 'Whether the session existed.', schema: ended },
    handle: (call) =>
      inSessions(call, async (sessions) => ({
        ended: await sessions.end(call.params['id']!, call.query['why'] ?? 'ended'),
      })),
  },
]

type Sessions = ReturnType<import('leasehold').Leasehold['sessions']>

function inSessions<Result>(
  call: Call,
  work: (sessions: Sessions) => Promise<Result>,
): Promise<Result> {
  return call.leasehold((leasehold) => work(leasehold.sessions(call.params['name']!)))
}

function inOne<Result>(call: Call, work: (one: Session) => Promise<Result>): Promise<Result> {
  return inSessions(call, async (sessions) => {
    const one = await sessions.get(call.params['id']!)
    if (one !== undefined) return work(one)
    throw new LeaseholdError('lease-not-found', 'no session has this id, or it has ended')
  })
}

function shown({ id, ref, user, data, lease }: Session): unknown {
  return { id, ref, user, data, lease }
}

function seen({ ref, user, data, lease, createdAt, until }: ListedSession): unknown {
  return { ref, user, data, lease, createdAt, until }
}
