import { memoryStore } from 'leasehold/memory'
import { LeaseholdError, type LeaseStore } from 'leasehold/port'
import { TestClock } from 'leasehold/testing'
import { describe, expect, it } from 'vitest'
import { createServerActions } from '../../../../src/access/guard/server-actions.ts'
import { everybody } from '../../../../src/access/identity/principal.ts'
import {
  type Queued,
  Withdrawn,
  waitUntilHeld,
  withdraw,
} from '../../../../src/http/requests/waits.ts'
import type { Call } from '../../../../src/http/route.ts'
import { lease } from '../../../access/scene.ts'
import { changedStore } from '../../../setup/changed-store.ts'

const TIMED_OUT = 'the wait was over'
const LEFT = 'nobody waits for it any more'

/** A waiting claim on two keys, or on these, and requests that wait for it, as at separate servers. */
async function queue(changes: Partial<LeaseStore> = {}, keys: readonly string[] = ['a', 'b']) {
  const clock = new TestClock()
  const inner = memoryStore({ clock })
  const store = changedStore(inner, changes)
  const holder = await lease(inner, ['b'], 'holder')
  const { lease: id, token } = await lease(inner, keys, 'waiter')
  const queued = (wait: number): Queued => ({
    ...{ lease: id, token, ttl: 60_000, wait, by: 'waiter', targets: [{ lease: id }] },
  })
  const callOf = (request?: string, { signal } = new AbortController(), principal = everybody()) =>
    ({
      store,
      clock,
      request,
      signal,
      principal,
      serverActions: createServerActions(store),
    }) as unknown as Call
  const ask = (wait: number, request?: string) => {
    const abort = new AbortController()
    const principal = everybody()
    const call = callOf(request, abort, principal)
    const asked: { answer?: boolean; error?: unknown } = {}
    waitUntilHeld(call, queued(wait)).then(
      (answer) => Object.assign(asked, { answer }),
      (error) => Object.assign(asked, { error }),
    )
    return { abort, principal, asked }
  }
  const free = async () => {
    await inner.revoke({ target: { lease: holder.lease } })
    await clock.advance(0)
  }
  const ending = async () => (await inner.read({ lease: id })).end
  return { clock, inner, id, token, queued, callOf, ask, free, ending }
}

describe('a request that waits', () => {
  it.each([undefined, 'r'])('gets the answer that it holds (request %s)', async (request) => {
    const { clock, ask, free, ending } = await queue()
    const { asked } = ask(10_000, request)
    await clock.advance(5000)
    expect(asked).toEqual({})
    await free()
    expect([asked, await ending()]).toEqual([{ answer: true }, undefined])
  })

  it.each([undefined, 'r'])('is withdrawn when its time is over (request %s)', async (request) => {
    const { clock, ask, ending } = await queue()
    const { asked } = ask(500, request)
    await clock.advance(500)
    expect(asked).toEqual({ answer: false })
    expect(await ending()).toEqual({ reason: 'revoked', by: 'waiter', why: TIMED_OUT })
  })

  it('needs no confirmation without an Idempotency-Key', async () => {
    const { clock, ask, free } = await queue({ revoke: () => Promise.reject(new Error('asked')) })
    const { asked } = ask(10_000)
    await clock.advance(0)
    await free()
    expect(asked).toEqual({ answer: true })
  })

  it.each([TIMED_OUT, LEFT])(
    'is lost when its claim is removed, even with the words of a withdrawal: %s',
    async (why) => {
      const { clock, inner, id, ask } = await queue()
      const { asked } = ask(10_000)
      await clock.advance(0)
      await inner.revoke({ target: { lease: id }, why })
      await clock.advance(0)
      expect(asked.error).toMatchObject({ code: 'lost', why })
    },
  )

  it('is refused with the reason when another server withdraws it just before its caller leaves', async () => {
    const abort = new AbortController()
    const { clock, inner, id, callOf, queued } = await queue({
      watch: (_target, observer) => {
        queueMicrotask(() => {
          observer({ type: 'gone', end: { reason: 'revoked', why: TIMED_OUT } })
          abort.abort(new Error('gone'))
        })
        return { close: () => {} }
      },
    })
    await inner.revoke({ target: { lease: id } })
    const asking = waitUntilHeld(callOf('r', abort), queued(10_000))
    asking.catch(() => {})
    await clock.advance(0)
    await expect(asking).rejects.toMatchObject({ reason: abort.signal.reason })
  })

  it('is withdrawn when its caller has gone, and refused with the reason', async () => {
    const { clock, ask, ending } = await queue()
    const { asked, abort } = ask(10_000)
    await clock.advance(0)
    const reason = new Error('gone')
    abort.abort(reason)
    await clock.advance(0)
    expect(asked.error).toBe(reason)
    expect(await ending()).toEqual({ reason: 'revoked', by: 'waiter', why: LEFT })
  })

  it('may start again under its key when its last caller has gone', async () => {
    const { clock, ask, ending } = await queue()
    const { asked, abort } = ask(10_000, 'r')
    await clock.advance(0)
    const reason = new Error('gone')
    abort.abort(reason)
    await clock.advance(0)
    expect(asked.error).toBeInstanceOf(Withdrawn)
    expect((asked.error as Withdrawn).reason).toBe(reason)
    expect(await ending()).toMatchObject({ why: LEFT })
  })

  it('is refused for its token when that has ended, whatever else has happened', async () => {
    const { clock, ask } = await queue()
    const { asked, abort, principal } = ask(10_000)
    await clock.advance(0)
    principal.ended = 'its access token was revoked'
    abort.abort(new Error('gone'))
    await clock.advance(0)
    const refusal = {
      code: 'unauthenticated',
      message: principal.ended,
      cause: abort.signal.reason,
    }
    expect(asked.error).toMatchObject(refusal)
  })

  it.each([undefined, 'r'])(
    'is lost when its place is taken away (request %s)',
    async (request) => {
      const { clock, inner, id, ask } = await queue()
      const { asked } = ask(10_000, request)
      await clock.advance(0)
      await inner.revoke({ target: { lease: id }, by: 'ops', why: 'stuck' })
      await clock.advance(0)
      expect(asked.error).toMatchObject({ code: 'lost', by: 'ops', why: 'stuck' })
    },
  )

  it.each([500, 10_000])('is not refused for sure if it cannot be withdrawn', async (wait) => {
    const fault = new LeaseholdError('storage-failed', 'the disk is away')
    const { clock, ask } = await queue({ revoke: () => Promise.reject(fault) })
    const { asked, abort } = ask(wait)
    await clock.advance(500)
    abort.abort(new Error('gone'))
    await clock.advance(0)
    expect(asked.error).toMatchObject({ code: 'unknown-outcome', cause: fault })
  })
})

describe('a request that waits at two servers', () => {
  it('is not withdrawn by one when the other has reported that it holds', async () => {
    const { clock, ask, callOf, free, ending, queued } = await queue()
    const one = ask(10_000, 'r')
    await clock.advance(0)
    await free()
    expect(one.asked).toEqual({ answer: true })
    expect(await withdraw(callOf('r'), queued(0), TIMED_OUT)).toBe(false)
    expect(await ending()).toBeUndefined()
    const two = ask(10_000, 'r')
    await clock.advance(0)
    expect(two.asked).toEqual({ answer: true })
  })

  it('gets the same answer from both when its time is over at one', async () => {
    const { clock, ask } = await queue()
    const [one, two] = [ask(500, 'r'), ask(10_000, 'r')]
    await clock.advance(500)
    expect([one.asked, two.asked]).toEqual([{ answer: false }, { answer: false }])
  })

  it('starts again at the one when the callers of the other have gone', async () => {
    const { clock, ask } = await queue()
    const [one, two] = [ask(10_000, 'r'), ask(10_000, 'r')]
    await clock.advance(0)
    one.abort.abort(new Error('gone'))
    await clock.advance(0)
    expect(two.asked.error).toBeInstanceOf(Withdrawn)
    expect((two.asked.error as Withdrawn).reason).toBeUndefined()
  })

  it.each([
    [TIMED_OUT, { answer: false }],
    [LEFT, { error: expect.any(Withdrawn) }],
  ])('is not reported as held when it was withdrawn just before: %s', async (why, expected) => {
    const { clock, token, ask, callOf, queued } = await queue({
      // It was notified that it holds before it was withdrawn.
      watch: (target, observer) => {
        if ('lease' in target) queueMicrotask(() => observer({ type: 'holds', revision: 1, token }))
        return { close: () => {} }
      },
    })
    await withdraw(callOf('r'), queued(0), why)
    const { asked } = ask(10_000, 'r')
    await clock.advance(0)
    expect(asked).toEqual(expected)
  })
})

describe('a claim on one key that waits at two servers', () => {
  /** It is notified that it holds, whatever has happened to it since. */
  const heard = (token: () => number): Partial<LeaseStore> => ({
    watch: (target, observer) => {
      if ('lease' in target)
        queueMicrotask(() => observer({ type: 'holds', revision: 1, token: token() }))
      return { close: () => {} }
    },
  })

  it.each(['its lease', 'the claim'])(
    'is not reported as held when the other has withdrawn %s just before',
    async (what) => {
      let own = 0
      const made = await queue(
        heard(() => own),
        ['b'],
      )
      const { clock, id, token, ask, callOf } = made
      own = token
      const target = what === 'its lease' ? { lease: id } : { key: 'b', token }
      await withdraw(callOf('r'), { targets: [target], by: 'waiter' }, TIMED_OUT)
      const { asked } = ask(10_000, 'r')
      await clock.advance(0)
      expect(asked).toEqual({ answer: false })
    },
  )
})

describe('to withdraw', () => {
  it('continues with the other keys when the first is no longer claimed', async () => {
    const { inner, id, token, callOf } = await queue()
    await inner.revoke({ target: { key: 'a', token } })
    const targets = ['a', 'b'].map((key) => ({ key, token })) as unknown as Queued['targets']
    expect(await withdraw(callOf(), { targets, by: 'waiter' })).toBe(true)
    expect((await inner.read({ lease: id })).lease).toMatchObject({ claims: 0 })
  })

  it('removes the claims on all keys, and a lease that has ended needs none', async () => {
    const { inner, id, token, callOf } = await queue()
    const call = callOf()
    const targets = ['a', 'b'].map((key) => ({ key, token })) as unknown as Queued['targets']
    expect(await withdraw(call, { targets, by: 'waiter' })).toBe(true)
    expect((await inner.read({ lease: id })).lease).toMatchObject({ claims: 0 })
    await inner.revoke({ target: { lease: id } })
    for (const gone of [id, '9.99']) {
      expect(await withdraw(call, { targets: [{ lease: gone }], by: 'waiter' })).toBe(true)
    }
  })
})
