import { type Answer, type Call, ConsulError, jsonBody } from './answer.ts'
import type { BlockingQueries } from './blocking-queries.ts'
import { nanoseconds } from './durations.ts'
import { SESSION } from './names.ts'
import { refuseMethod, unknownPath } from './refusals.ts'
import type { Session, Sessions } from './sessions.ts'

export interface SessionParts {
  readonly sessions: Sessions
  readonly blocking: BlockingQueries
}

/** `/v1/session/…`. */
export async function sessionRoute(
  { sessions, blocking }: SessionParts,
  call: Call,
  [action, id = '']: readonly string[],
): Promise<Answer> {
  switch (action) {
    case 'create':
      refuseMethod(call, 'PUT')
      return { body: { ID: await sessions.create(jsonBody(call)) } }
    case 'renew':
    case 'destroy':
      refuseMethod(call, 'PUT')
      if (id === '') throw new ConsulError(400, 'Missing session')
      if (action === 'renew') return renew(sessions, id)
      await sessions.destroy(id)
      return { body: true }
    case 'info':
      refuseMethod(call, 'GET')
      if (id === '') throw new ConsulError(400, 'Missing session')
      return blocking.answer(call, { prefix: `${SESSION}${id}`, exact: true }, async (latest) => {
        const session = await sessions.get(id)
        return session
          ? { index: session.index, body: [describe(session)] }
          : { index: latest, body: [] }
      })
    case 'list':
    case 'node':
      refuseMethod(call, 'GET')
      if (action === 'node' && id === '') throw new ConsulError(400, 'Missing node name')
      return blocking.answer(call, { prefix: SESSION, exact: false }, async (index) => {
        const found = await sessions.list()
        const wanted = found.filter(({ node }) => action === 'list' || node === id)
        return { index, body: wanted.map(describe) }
      })
    default:
      throw unknownPath(call)
  }
}

async function renew(sessions: Sessions, id: string): Promise<Answer> {
  const session = await sessions.renew(id)
  if (session === undefined) throw new ConsulError(404, `Session id '${id}' not found`)
  return { body: [describe(session)] }
}

function describe(session: Session): object {
  const { id, name, node, ttl, lockDelay, behavior, nodeChecks, index } = session
  return {
    ID: id,
    Name: name,
    Node: node,
    LockDelay: nanoseconds(lockDelay),
    Behavior: behavior,
    TTL: ttl,
    NodeChecks: nodeChecks,
    ServiceChecks: null,
    CreateIndex: index,
    ModifyIndex: index,
  }
}
