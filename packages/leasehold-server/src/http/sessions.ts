import type { ListedSession, NewSession, Session } from 'leasehold'
import { LeaseholdError } from 'leasehold/port'
import type { Call, Parameter, Route } from './route.ts'
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
  about: 'Which sessions: `main` is the usual name.',
  required: true,
  example: 'main',
}
const id: Parameter = {
  schema: text(),
  about: 'The secret that it was created with.',
  required: true,
  example: 'a-session',
}
const user: Parameter = { schema: text(), about: 'Whose.', required: true, example: 'ada' }

const session = answered(
  {
    id: text('The secret by which it is found: give it to nobody but its user.'),
    ref: text('A name for it that is no secret.'),
    user: text(),
    data: anything,
    lease: text('What is granted under it ends with the session.'),
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
    title: 'Begins a session',
    params: { name },
    body: {
      schema: given(
        {
          user: text('Whose it is.'),
          data: { description: 'Any JSON.' },
          ttl: {
            ...duration,
            description: 'How long it lives unless it is used. 20m if not given.',
          },
          max: { ...duration, description: 'How long it may live in all. 24h if not given.' },
        },
        'data',
      ),
      example: { user: 'ada', data: { cart: ['book'] }, ttl: '20m' },
    },
    answer: { status: 201, about: 'It lives.', schema: session },
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
    title: 'Lists the sessions of a user',
    params: { name },
    query: {
      user,
      limit: {
        schema: { ...whole(1), maximum: 10_000 },
        about: 'At most so many. 1000 if not given.',
      },
    },
    answer: {
      status: 200,
      about: 'Without their ids.',
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
    title: 'Ends all sessions of a user',
    params: { name },
    query: {
      user,
      except: { schema: text(), about: 'The id of one that goes on.' },
      why: { ...whyPart, example: 'password changed' },
    },
    answer: { status: 200, about: 'How many there were.', schema: answered({ ended: whole() }) },
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
    title: 'Gets a session, and by `touch` says that it is in use',
    params: { name, id },
    query: {
      touch: {
        schema: flag,
        about: 'It lives for its ttl from now. Not if not given.',
        example: true,
      },
    },
    answer: { status: 200, about: 'As it is now.', schema: session },
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
    title: 'Saves the data of a session',
    about: 'In place of the old; the last write wins. It is in use, too.',
    params: { name, id },
    body: {
      schema: given({ data: { description: 'Any JSON.' } }, 'data'),
      example: { data: { cart: [] } },
    },
    answer: { status: 200, about: 'As it is now.', schema: session },
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
    title: 'Ends a session, and all that is held under it',
    params: { name, id },
    query: { why: { ...whyPart, example: 'logged out' } },
    answer: { status: 200, about: 'Whether there was one.', schema: ended },
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
    throw new LeaseholdError(
      'lease-not-found',
      'there is no session with this id, or none any more',
    )
  })
}

function shown({ id, ref, user, data, lease }: Session): unknown {
  return { id, ref, user, data, lease }
}

function seen({ ref, user, data, lease, createdAt, until }: ListedSession): unknown {
  return { ref, user, data, lease, createdAt, until }
}
