import { type Answer, type Call, ConsulError, jsonBody } from './answer.ts'
import type { BlockingQueries } from './blocking-queries.ts'
import { nanoseconds } from './durations.ts'
import { SESSION } from './names.ts'
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
  if (call.method === 'PUT') {
    if (action === 'create') return { body: { ID: await sessions.create(jsonBody(call)) } }
    if (action === 'renew') return renew(sessions, id)
    if (action === 'destroy') {
      await sessions.destroy(id)
      return { body: true }
    }
  } else if (call.method === 'GET') {
    if (action === 'info') {
      return blocking.answer(call, { prefix: `${SESSION}${id}`, exact: true }, async (latest) => {
        const session = await sessions.get(id)
        return session
          ? { index: session.index, body: [describe(session)] }
          : { index: latest, body: [] }
      })
    }
    if (action === 'list' || action === 'node') {
      return blocking.answer(call, { prefix: SESSION, exact: false }, async (latest) => {
        const found = await sessions.list()
        const wanted = found.filter(({ node }) => action === 'list' || node === id)
        const index = Math.max(latest, ...found.map((each) => each.index))
        return { index, body: wanted.map(describe) }
      })
    }
  }
  throw new ConsulError(404, `Invalid URL path: not found: session/${action}`)
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
