import { Leasehold } from 'leasehold'
import { memoryStore } from 'leasehold/memory'
import { LeaseholdError, type LeaseStore } from 'leasehold/port'
import { describe, expect, it } from 'vitest'
import { problemOf } from '../../../src/http/responses/problem.ts'
import type { Call } from '../../../src/http/route.ts'
import { lease } from '../../access/scene.ts'
import { changedStore } from '../../setup/changed-store.ts'
import { noServerActions, pool, scene } from './handler-scene.ts'

describe('a lock that was taken', () => {
  it('is released when its caller has gone, because nobody can know it', async () => {
    const { inner, caller, take, count } = scene()
    caller.gone = true
    const { outcome, done } = take('k', { holder: 'ann' })
    await done
    expect(outcome.error).toMatchObject({ code: 'aborted' })
    expect(await count('k')).toBe(0)
    const { tenures } = await inner.read({ history: 'k' })
    expect(tenures).toMatchObject([{ end: { by: 'ann', why: 'nobody waits for it any more' } }])
  })

  it('stays when its caller has gone but may retry with its Idempotency-Key', async () => {
    const { caller, take, count } = scene()
    caller.gone = true
    const { outcome, done } = take('k', {}, { request: 'r' })
    await done
    expect(outcome.answer).toMatchObject({ key: 'k', remaining: 30_000 })
    expect(await count('k')).toBe(1)
  })

  it('after a wait is released if it cannot be renewed', async () => {
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

describe('a lock that was not granted in time', () => {
  it('names its current holder, and not the one at the start of the wait', async () => {
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

  it('names no holder, if it was released just then', async () => {
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

  it('that holds is removed if its caller has gone, unless the caller may retry', async () => {
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

  it("a lease and its claims are answered with the store's answer, which nobody can have changed", async () => {
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

  it('of a claim reports a loss, if it held and was removed since', async () => {
    const { inner, claim } = scene()
    const { lease: id } = await lease(inner)
    await claim(id, ['k'], undefined, { request: 'r' }).done
    await inner.revoke({ target: { key: 'k' } })
    const { outcome, done } = claim(id, ['k'], undefined, { request: 'r' })
    await done
    expect(outcome.error).toMatchObject({ code: 'lost' })
  })

  it('of a waiting claim gets the same answer, even if it was removed since', async () => {
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

  it('is answered with its ttl, which nobody can have used up', async () => {
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

  it('is not written again by a heartbeat without changes', async () => {
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

  it('reports who ended its hold and why', async () => {
    const { own, keep } = await lost()
    expect(await keep(own)).toMatchObject({ code: 'lost', by: 'ops', why: 'it was ann' })
  })

  it('reports it too if its lease has a secret', async () => {
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

  it('reports a revocation to a caller that may not read the holder', async () => {
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

describe('an invalid duration', () => {
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
