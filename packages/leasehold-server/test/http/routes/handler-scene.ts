import { memoryStore } from 'leasehold/memory'
import { type LeaseStore, systemRandom } from 'leasehold/port'
import { TestClock } from 'leasehold/testing'
import { createServerActions } from '../../../src/access/guard/server-actions.ts'
import { everybody } from '../../../src/access/identity/principal.ts'
import type { Admission } from '../../../src/access/index.ts'
import { DEFAULT_HTTP } from '../../../src/http/options.ts'
import { PrincipalSession } from '../../../src/http/requests/principal-session.ts'
import type { Call } from '../../../src/http/route.ts'
import { ROUTES } from '../../../src/http/routes/index.ts'
import { changedStore } from '../../setup/changed-store.ts'

/** The handlers of a route, on a simulated clock. */
export function scene(changes: Partial<LeaseStore> = {}) {
  const clock = new TestClock()
  const inner = memoryStore({ clock })
  const store = changedStore(inner, changes)
  /** A caller that may leave. */
  const caller = { gone: false }
  const handle = (id: string, asked: Partial<Call>) => {
    const call = {
      ...{
        store,
        clock,
        options: DEFAULT_HTTP,
        principal: everybody(),
        serverActions: createServerActions(store),
      },
      ...{ random: systemRandom, params: {}, query: {}, body: undefined, request: undefined },
      signal: new AbortController().signal,
      get gone() {
        return caller.gone
      },
      ...asked,
    } as unknown as Call
    const outcome: { answer?: unknown; error?: unknown } = {}
    const route = ROUTES.find((one) => one.id === id)!
    const done = (async () => route.handle(call))().then(
      (answer) => Object.assign(outcome, { answer }),
      (error) => Object.assign(outcome, { error }),
    )
    return { outcome, done }
  }
  const take = (key: string, query: object = {}, more: Partial<Call> = {}) =>
    handle('takeLock', { params: { key }, query: query as Call['query'], ...more })
  const claim = (id: string, keys: readonly string[], wait?: string, more: Partial<Call> = {}) =>
    handle('claimKeys', {
      params: { lease: id },
      query: (wait === undefined ? {} : { wait }) as Call['query'],
      body: { claims: keys.map((key) => ({ key })) },
      ...more,
    })
  const count = async (key: string) => (await inner.read({ key })).count
  return { clock, inner, caller, handle, take, claim, count }
}

/** A pool with one resource, in its own session. */
export async function pool() {
  const { clock, inner, caller, handle } = scene()
  const principal = everybody()
  const admission = {
    principal,
    store: inner,
    serverActions: createServerActions(inner),
    leave: () => {},
  }
  const dependencies = { clock, random: systemRandom, options: DEFAULT_HTTP }
  const session = await PrincipalSession.open(admission as unknown as Admission, dependencies)
  await session.leasehold.pool('gpu', { resources: [{ name: 'g' }] }).status()
  const take = async (keep: PrincipalSession['keep']) => {
    Object.assign(session, { keep })
    const { outcome, done } = handle('takePermit', {
      ...{ params: { pool: 'gpu' }, query: { tenant: 't' } as unknown as Call['query'] },
      session: async () => session,
    })
    await done
    return outcome
  }
  const count = async () => (await inner.read({ key: 'pool/gpu/r/g' })).count
  return { caller, session, take, count }
}

/** The server must not act here: it has no reason to. */
export const noServerActions = new Proxy({} as Call['serverActions'], {
  get: (_, name) => () => Promise.reject(new Error(`${String(name)} was called`)),
})
