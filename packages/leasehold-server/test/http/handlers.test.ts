import { Leasehold } from 'leasehold'
import { memoryStore } from 'leasehold/memory'
import { LeaseholdError, type LeaseStore, systemRandom } from 'leasehold/port'
import { TestClock } from 'leasehold/testing'
import { describe, expect, it } from 'vitest'
import { createServerActions } from '../../src/access/guard/server-actions.ts'
import { everybody } from '../../src/access/identity/principal.ts'
import type { Admission } from '../../src/access/index.ts'
import { DEFAULT_HTTP } from '../../src/http/options.ts'
import { PrincipalSession } from '../../src/http/principal-session.ts'
import { problemOf } from '../../src/http/problem.ts'
import type { Call } from '../../src/http/route.ts'
import { ROUTES } from '../../src/http/routes/index.ts'
import { lease } from '../access/scene.ts'
import { changedStore } from '../changed-store.ts'

/** What handles the requests of a route, on a clock that is moved. */
function scene(changes: Partial<LeaseStore> = {}) {
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

/** A pool with one resource, in an session of its own. */
async function pool() {
  const { clock, inner, caller, handle } = scene()
  const principal = everybody()
  const admission = {
    principal,
    store: inner,
    serverActions: createServerActions(inner),
    leave: () => {},
  }
  const around = { clock, random: systemRandom, options: DEFAULT_HTTP }
  const session = await PrincipalSession.open(admission as unknown as Admission, around)
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

/** Nobody may ask the server to act: it has no reason to. */
const noServerActions = new Proxy({} as Call['serverActions'], {
  get: (_, name) => () => Promise.reject(new Error(`${String(name)} was called`)),
})

describe('a lock that was taken', () => {
  it('is given back when its caller has gone, and nobody can know of it', async () => {
    const { inner, caller, take, count } = scene()
    caller.gone = true
    const { outcome, done } = take('k', { holder: 'ann' })
    await done
    expect(outcome.error).toMatchObject({ code: 'aborted' })
    expect(await count('k')).toBe(0)
    const { tenures } = await inner.read({ history: 'k' })
    expect(tenures).toMatchObject([{ end: { by: 'ann', why: 'nobody waits for it any more' } }])
  })

  it('stays when its caller has gone, and may ask again with its Idempotency-Key', async () => {
    const { caller, take, count } = scene()
    caller.gone = true
    const { outcome, done } = take('k', {}, { request: 'r' })
    await done
    expect(outcome.answer).toMatchObject({ key: 'k', remaining: 30_000 })
    expect(await count('k')).toBe(1)
  })

  it('after a wait is given back if it cannot be renewed', async () => {
    const { clock, inner, take, count } = scene({
      renew: () => Promise.reject(new LeaseholdError('storage-failed', 'the disk is away')),
    })
    const held = await lease(inner, ['k'])
    const { outcome, done } = take('k', { wait: '10s' })
    await clock.advance(0)
    expect(await count('k')).toBe(2)
    await inner.revoke({ target: { lease: held.lease } })
    await done
    expect(outcome.error).toMatchObject({ code: 'storage-failed' })
    expect(await count('k')).toBe(0)
  })
})

describe('a lock that did not come in time', () => {
  it('is held by whoever holds it then, and not by whoever did when the wait began', async () => {
    const { clock, inner, take } = scene()
    const first = await lease(inner, ['k'], 'ada')
    await lease(inner, ['k'], 'ben')
    const { outcome, done } = take('k', { wait: '1s' })
    await clock.advance(500)
    await inner.revoke({ target: { lease: first.lease } })
    await clock.advance(500)
    await done
    expect(problemOf(outcome.error)).toMatchObject({ code: 'timeout', holder: 'ben' })
  })

  it('is held by nobody, if it was left just then', async () => {
    const { clock, inner, take } = scene({
      revoke: async (request) => {
        await inner.revoke({ target: { prefix: '' } })
        return inner.revoke(request)
      },
    })
    await lease(inner, ['k'], 'ada')
    const { outcome, done } = take('k', { wait: '1s' })
    await clock.advance(1000)
    await done
    const problem = problemOf(outcome.error)
    expect(problem).toMatchObject({
      code: 'timeout',
      detail: '"k" was not free in time; wait longer',
    })
    expect(problem).not.toHaveProperty('holder')
  })
})

describe('a claim that waits', () => {
  it('keeps its lease meanwhile', async () => {
    const { clock, inner, claim } = scene()
    const held = await lease(inner, ['k'])
    const { lease: id } = await lease(inner)
    const { outcome } = claim(id, ['k'], '4m')
    for (let at = 0; at < 6; at++) {
      await clock.advance(30_000)
      await inner.renew([held.lease])
    }
    expect(outcome).toEqual({})
    expect((await inner.read({ lease: id })).lease).toBeDefined()
  })

  it('is lost if its lease has ended since it was made', async () => {
    const { clock, inner, claim } = scene({
      claim: async (request) => {
        const answer = await inner.claim(request)
        await inner.revoke({ target: { lease: request.lease }, why: 'stuck' })
        return answer
      },
    })
    await lease(inner, ['k'])
    const { lease: id } = await lease(inner)
    const { outcome } = claim(id, ['k'], '10s')
    await clock.advance(0)
    expect(outcome.error).toMatchObject({ code: 'lost', why: 'stuck' })
  })

  it('and came to hold is removed if its caller has gone, unless that may ask again', async () => {
    for (const request of [undefined, 'r']) {
      const { clock, inner, caller, claim, count } = scene()
      const held = await lease(inner, ['k'])
      const { lease: id } = await lease(inner)
      const { outcome, done } = claim(id, ['k'], '10s', { request })
      await clock.advance(0)
      caller.gone = true
      await inner.revoke({ target: { lease: held.lease } })
      await done
      if (request === undefined) {
        expect(outcome.error).toMatchObject({ code: 'aborted' })
        expect((await inner.read({ lease: id })).lease).toMatchObject({ claims: 0 })
      } else expect(outcome.answer).toMatchObject({ holds: true, ahead: [] })
      expect(await count('k')).toBe(request === undefined ? 0 : 1)
    }
  })
})

describe('without an Idempotency-Key', () => {
  it('a lock that was waited for is lost if its key is revoked before the answer', async () => {
    const { clock, inner, take } = scene({
      renew: async (leases) => {
        const answer = await inner.renew(leases)
        await inner.revoke({ target: { key: 'k' } })
        return answer
      },
    })
    const held = await lease(inner, ['k'])
    const { outcome, done } = take('k', { wait: '10s' })
    await clock.advance(0)
    await inner.revoke({ target: { lease: held.lease } })
    await done
    expect(outcome.error).toMatchObject({ code: 'lost' })
  })

  it('a lease and its claims are answered with what the store said, which nobody could change', async () => {
    const { inner, handle, claim } = scene()
    const body = { ttl: '30s', claims: [{ key: 'a' }] }
    const granted = handle('grantLease', { body, serverActions: noServerActions })
    await granted.done
    expect(granted.outcome.answer).toMatchObject({ holds: true })
    const { lease: id } = await lease(inner)
    const { outcome, done } = claim(id, ['b'], undefined, { serverActions: noServerActions })
    await done
    expect(outcome.answer).toMatchObject({ holds: true })
  })
})

describe('a repeat', () => {
  it('of a lease without claims gets the same lease', async () => {
    const { handle } = scene()
    const asked = { body: { ttl: '30s' }, request: 'r' }
    const [one, two] = [handle('grantLease', asked), handle('grantLease', asked)]
    await Promise.all([one.done, two.done])
    expect(one.outcome.answer).toMatchObject({ token: 0, holds: true })
    expect(two.outcome).toEqual(one.outcome)
  })

  it('of a claim is told that it is lost, if it held and was removed since', async () => {
    const { inner, claim } = scene()
    const { lease: id } = await lease(inner)
    await claim(id, ['k'], undefined, { request: 'r' }).done
    await inner.revoke({ target: { key: 'k' } })
    const { outcome, done } = claim(id, ['k'], undefined, { request: 'r' })
    await done
    expect(outcome.error).toMatchObject({ code: 'lost' })
  })

  it('of a claim that waits gets the same answer, also if it was removed since', async () => {
    const { inner, claim } = scene()
    await lease(inner, ['k'])
    const { lease: id } = await lease(inner)
    const first = claim(id, ['k'], undefined, { request: 'r' })
    await first.done
    expect(first.outcome.answer).toMatchObject({ holds: false })
    await inner.revoke({ target: { prefix: '' } })
    const again = claim(id, ['k'], undefined, { request: 'r' })
    await again.done
    expect(again.outcome).toEqual(first.outcome)
  })
})

describe('a registered instance', () => {
  const register = (handle: ReturnType<typeof scene>['handle'], more: Partial<Call>) =>
    handle('registerInstance', {
      ...{ params: { service: 's' }, query: { id: 'a' } as unknown as Call['query'], body: {} },
      leasehold: async (work) => work(await Leasehold.open(memoryStore())),
      ...more,
    })

  it('is answered with its ttl, which nobody could use up', async () => {
    const { handle } = scene()
    const { outcome, done } = register(handle, { serverActions: noServerActions })
    await done
    expect(outcome.answer).toMatchObject({ service: 's', id: 'a', remaining: 15_000 })
  })

  it('is lost for a repeat if it was taken out since', async () => {
    const { inner, handle } = scene()
    const first = register(handle, { request: 'r' })
    await first.done
    const { key } = first.outcome.answer as { key: string }
    await inner.revoke({ target: { key } })
    const again = register(handle, { request: 'r' })
    await again.done
    expect(again.outcome.error).toMatchObject({ code: 'lost' })
  })

  it('is not written again by a heartbeat that tells nothing new', async () => {
    const { inner, handle } = scene()
    const { outcome, done } = register(handle, {})
    await done
    const { key, lease: id } = outcome.answer as { key: string; lease: string }
    const before = await inner.read({ key })
    const kept = handle('keepInstance', {
      params: { service: 's', instance: 'a' },
      query: { lease: id } as unknown as Call['query'],
    })
    await kept.done
    expect(kept.outcome.answer).toEqual({ lease: id, remaining: 15_000 })
    expect(await inner.read({ key })).toMatchObject({ revision: before.revision })
  })
})

describe('a lock that was taken away', () => {
  /** A lease that has lost its key, and others that held it before and after. */
  async function lost() {
    const { inner, handle } = scene()
    for (const holder of ['ada', 'ann', 'ben']) {
      await lease(inner, ['k'], holder)
      await inner.revoke({ target: { key: 'k' }, by: 'ops', why: `it was ${holder}` })
    }
    const { leases } = await inner.read({ leases: true })
    const own = leases.find(({ holder }) => holder === 'ann')!.id
    const keep = async (id: string, store: LeaseStore = inner) => {
      const query = { lease: id } as unknown as Call['query']
      const { outcome, done } = handle('keepLock', { params: { key: 'k' }, query, store })
      await done
      return outcome.error
    }
    return { inner, own, keep }
  }

  it('is told by whom and why its own holding ended', async () => {
    const { own, keep } = await lost()
    expect(await keep(own)).toMatchObject({ code: 'lost', by: 'ops', why: 'it was ann' })
  })

  it('is told so too if its lease has a secret', async () => {
    const { inner, own, keep } = await lost()
    const guarded = changedStore(inner, {
      read: ((query: { lease?: string }) =>
        inner.read({
          ...query,
          ...(query.lease && { lease: own }),
        } as never)) as LeaseStore['read'],
    })
    expect(await keep(`${own}~secret`, guarded)).toMatchObject({ code: 'lost', why: 'it was ann' })
  })

  it('is told that it was revoked if it may not read who held it', async () => {
    const { inner, own, keep } = await lost()
    const forbidden = new LeaseholdError('forbidden', 'no')
    const blind = changedStore(inner, {
      read: ((query: object) =>
        'history' in query
          ? Promise.reject(forbidden)
          : inner.read(query as never)) as LeaseStore['read'],
    })
    const error = await keep(own, blind)
    expect(error).toMatchObject({ code: 'lost', reason: 'revoked', why: undefined })
  })
})

describe('a lease with several locks', () => {
  it('is kept for each with the token of that one', async () => {
    const { inner, handle, claim } = scene()
    const { lease: id } = await lease(inner, ['a'])
    await claim(id, ['b']).done
    const [second] = (await inner.read({ key: 'b' })).claims
    const query = { lease: id } as unknown as Call['query']
    const { outcome, done } = handle('keepLock', { params: { key: 'b' }, query })
    await done
    expect(outcome.answer).toMatchObject({ key: 'b', token: second!.token })
  })
})

describe('a permit that was taken', () => {
  it('is returned when its caller has gone', async () => {
    const { caller, take, count } = await pool()
    caller.gone = true
    const kept: unknown[] = []
    expect((await take((permit) => void kept.push(permit))).error).toMatchObject({
      code: 'aborted',
    })
    expect([kept, await count()]).toEqual([[], 0])
  })

  it('is not answered if the server ended it while it stops', async () => {
    const { session, take } = await pool()
    const ends = () => void session.close()
    expect((await take(ends)).error).toMatchObject({ code: 'closed' })
  })
})

describe('a duration that is none', () => {
  it.each([
    ['grantLease', 'ttl', { body: { ttl: 'soon' } }],
    ['grantLease', 'grace', { body: { ttl: '1s', grace: 'soon' } }],
    ['grantLease', 'maxLife', { body: { ttl: '1s', maxLife: 'soon' } }],
    ['revokeLease', 'after', { params: { lease: '1.1' }, query: { after: 'soon' } }],
    ['registerInstance', 'ttl', { params: { service: 's' }, query: { ttl: 'soon' }, body: {} }],
    ['takeLock', 'ttl', { params: { key: 'k' }, query: { ttl: 'soon' } }],
    ['takeLock', 'wait', { params: { key: 'k' }, query: { wait: 'soon' } }],
    ['takeLock', 'grace', { params: { key: 'k' }, query: { grace: 'soon' } }],
    ['takeLock', 'maxLife', { params: { key: 'k' }, query: { maxLife: 'soon' } }],
  ])('is refused by its name: %s %s', async (id, name, asked) => {
    const { handle } = scene()
    const { outcome, done } = handle(id, asked as unknown as Partial<Call>)
    await done
    expect(outcome.error).toMatchObject({
      code: 'invalid-argument',
      message: expect.stringMatching(new RegExp(`^${name} `)),
    })
  })
})
