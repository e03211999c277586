import { memoryStore } from 'leasehold/memory'
import { LeaseholdError, type LeaseStore, type Notice } from 'leasehold/port'
import { TestClock } from 'leasehold/testing'
import { describe, expect, it } from 'vitest'
import { createServerActions } from '../../../../src/access/guard/server-actions.ts'
import {
  lostError,
  renewed,
  stillClaimed,
  stillHeld,
  untilHeld,
} from '../../../../src/http/requests/waits.ts'
import { lease } from '../../../access/scene.ts'
import { changedStore } from '../../../setup/changed-store.ts'

const refused = (code: string, more: object = {}) => expect.objectContaining({ code, ...more })

const holds = (token: number): Notice => ({ type: 'holds', revision: 1, token })
const standing = (...claims: object[]) =>
  ({ type: 'standing', revision: 1, claims }) as unknown as Notice

/** A claim that waits for a key, or for several, which another lease holds. */
async function waiting(keys: readonly string[] = ['k'], changes: Partial<LeaseStore> = {}) {
  const clock = new TestClock()
  const inner = memoryStore({ clock })
  const store = changedStore(inner, changes)
  const holder = await lease(inner, [keys.at(-1)!], 'holder')
  const { lease: id, token } = await lease(inner, keys, 'waiter')
  const abort = new AbortController()
  const outcome: { holds?: boolean; error?: unknown } = {}
  const wait = (ms: number, ttl = 60_000) => {
    const place = { lease: id, token, ttl }
    untilHeld(store, clock, place, ms, abort.signal).then(
      (holds) => Object.assign(outcome, { holds }),
      (error) => Object.assign(outcome, { error }),
    )
    return clock.advance(0)
  }
  return { clock, inner, holder, id, token, abort, outcome, wait }
}

describe('a claim that is waited for', () => {
  it('holds as soon as all its keys are free', async () => {
    const { clock, inner, holder, outcome, wait } = await waiting(['a', 'b'])
    await wait(10_000)
    await clock.advance(5000)
    expect(outcome).toEqual({})
    await inner.revoke({ target: { lease: holder.lease } })
    await clock.advance(0)
    expect(outcome).toEqual({ holds: true })
  })

  it('that holds already is not waited for', async () => {
    const { inner, holder, outcome, wait } = await waiting()
    await inner.revoke({ target: { lease: holder.lease } })
    await wait(10_000)
    expect(outcome).toEqual({ holds: true })
  })

  it('that holds already is not waited for, although its lease waits for another', async () => {
    const { inner, holder, id, outcome, wait } = await waiting()
    await inner.revoke({ target: { lease: holder.lease } })
    await lease(inner, ['other'])
    await inner.claim({ lease: id, claims: [{ key: 'other' }] })
    await wait(10_000)
    expect(outcome).toEqual({ holds: true })
  })

  it('is not waited for longer than requested', async () => {
    const { clock, outcome, wait } = await waiting()
    await wait(500)
    await clock.advance(499)
    expect(outcome).toEqual({})
    await clock.advance(1)
    expect(outcome).toEqual({ holds: false })
  })

  it('is lost when it is removed or its lease ends, with the reason', async () => {
    for (const isLease of [true, false]) {
      const { clock, inner, id, token, outcome, wait } = await waiting()
      await wait(10_000)
      const target = isLease ? { lease: id } : { key: 'k', token }
      await inner.revoke({ target, by: 'ops', why: 'stuck' })
      await clock.advance(0)
      expect(outcome.error).toEqual(refused('lost', { by: 'ops', why: 'stuck' }))
    }
  })

  it('that is missing at the first check is lost', async () => {
    const { inner, token, outcome, wait } = await waiting()
    await inner.revoke({ target: { key: 'k', token } })
    await wait(10_000)
    expect(outcome.error).toEqual(refused('lost'))
  })

  it('is not affected by other claims of its lease', async () => {
    const { clock, inner, id, outcome, wait } = await waiting()
    await wait(10_000)
    const more = await inner.claim({ lease: id, claims: [{ key: 'free' }] })
    if (more.outcome === 'busy') throw new Error('busy')
    await clock.advance(0)
    await inner.revoke({ target: { key: 'free', token: more.token } })
    await clock.advance(0)
    expect(outcome).toEqual({})
  })

  it.each([true, false])('is given up when its signal is aborted (before: %s)', async (before) => {
    const { clock, abort, outcome, wait } = await waiting()
    const reason = new Error('gone')
    if (before) abort.abort(reason)
    await wait(10_000)
    if (!before) abort.abort(reason)
    await clock.advance(0)
    expect(outcome.error).toBe(reason)
  })

  it.each([
    ['another claim of its lease holds', (token: number) => [holds(token + 1)]],
    [
      'it holds one of its keys',
      (token: number) => [standing({ token, holds: true }, { token, holds: false })],
    ],
  ])('is waited for on when %s', async (_what, notices) => {
    let queued: Notice[] = []
    const { token, clock, outcome, wait } = await waiting(['k'], {
      watch: (_target, observer) => {
        queueMicrotask(() => queued.forEach(observer))
        return { close: () => {} }
      },
    })
    queued = notices(token)
    await wait(10_000)
    expect(outcome).toEqual({})
    await clock.advance(10_000)
    expect(outcome).toEqual({ holds: false })
  })

  it('keeps the process alive until its time is over, and its lease only if that ends', async () => {
    const timers: { time: number; keepsAlive: boolean | undefined }[] = []
    const clock = {
      ...{ now: () => 7, asleep: () => 0, defer: () => {} },
      timer: (time: number, _run: () => void, keepsAlive?: boolean) => {
        timers.push({ time, keepsAlive })
        return { cancel: () => {} }
      },
    }
    const { inner, id, token } = await waiting()
    const { signal } = new AbortController()
    for (const ttl of [Infinity, 300]) {
      void untilHeld(inner, clock, { lease: id, token, ttl }, 500, signal)
    }
    const deadline = { time: 507, keepsAlive: true }
    expect(timers).toEqual([deadline, deadline, { time: 107, keepsAlive: undefined }])
  })

  it('is refused with the error of a watch that is interrupted', async () => {
    const error = new LeaseholdError('storage-failed', 'x')
    const { outcome, wait } = await waiting(['k'], {
      watch: (_target, observer) => {
        queueMicrotask(() => {
          observer({ type: 'capped', remaining: 1 } as Notice)
          observer({ type: 'interrupted', error })
        })
        return { close: () => {} }
      },
    })
    await wait(10_000)
    expect(outcome.error).toBe(error)
  })
})

describe('the lease of a claim that is waited for', () => {
  async function beating(ttl: number, fail = false) {
    let beats = 0
    let watches = 0
    const made = await waiting(['k'], {
      renew: async () => {
        beats++
        if (fail) throw new LeaseholdError('unknown-outcome', 'x')
        return { lost: [], capped: [] }
      },
      watch(this: LeaseStore, target, observer) {
        const watch = this.watch(target, observer)
        watches++
        return {
          close: () => {
            watches--
            watch.close()
          },
        }
      },
    })
    await made.wait(10_000, ttl)
    return { ...made, beats: () => beats, watches: () => watches }
  }

  it.each([
    [300, 100],
    [12, 5],
  ])('with a ttl of %d ms is renewed every %d ms', async (ttl, every) => {
    const { clock, beats } = await beating(ttl)
    await clock.advance(every - 1)
    expect(beats()).toBe(0)
    await clock.advance(1)
    expect(beats()).toBe(1)
    await clock.advance(every)
    expect(beats()).toBe(2)
  })

  it('is not given up when a renewal is not answered', async () => {
    const { clock, beats, outcome } = await beating(300, true)
    await clock.advance(200)
    expect([beats(), outcome]).toEqual([2, {}])
  })

  it.each(['it is over', 'it holds', 'it is aborted'])('is left alone when %s', async (how) => {
    const { clock, inner, holder, abort, beats, watches, outcome } = await beating(300)
    expect(watches()).toBe(1)
    if (how === 'it holds') await inner.revoke({ target: { lease: holder.lease } })
    if (how === 'it is aborted') abort.abort(new Error('gone'))
    await clock.advance(how === 'it is over' ? 10_000 : 0)
    expect(Object.keys(outcome)).toHaveLength(1)
    const before = beats()
    await clock.advance(1000)
    expect([beats(), watches()]).toEqual([before, 0])
  })
})

describe('the answer about a lease', () => {
  async function held() {
    const clock = new TestClock()
    const store = memoryStore({ clock })
    const granted = await lease(store, ['a', 'b'])
    return { clock, store, serverActions: createServerActions(store), granted }
  }

  it('is its full ttl, or the rest of its life', async () => {
    const { clock, store, serverActions, granted } = await held()
    await clock.advance(30_000)
    expect(await stillHeld(serverActions, granted, ['a', 'b'])).toBe(60_000)
    expect((await store.read({ lease: granted.lease })).lease?.renewedAt).toBe(clock.now())
    expect(await renewed(store, granted.lease, 60_000)).toBe(60_000)
    await store.revoke({ target: { lease: granted.lease }, after: 10_000 })
    expect(await stillHeld(serverActions, granted, ['a'])).toBe(10_000)
    expect(await renewed(store, granted.lease, 60_000)).toBe(10_000)
  })

  it('is a loss when it has ended, with the reason, or when a claim was removed', async () => {
    const { store, serverActions, granted } = await held()
    const { lease: id, token } = granted
    expect(await stillClaimed(serverActions, granted, ['a', 'b'])).toMatchObject({ id })
    const other = { lease: id, token: token + 1 }
    await expect(stillClaimed(serverActions, other, ['a'])).rejects.toEqual(refused('lost'))
    await store.revoke({ target: { key: 'b' } })
    expect(await stillClaimed(serverActions, granted, ['a'])).toMatchObject({ id })
    await expect(stillClaimed(serverActions, granted, ['a', 'b'])).rejects.toEqual(refused('lost'))
    await store.revoke({ target: { lease: id }, by: 'ops', why: 'stuck' })
    const lost = refused('lost', { reason: 'revoked', by: 'ops', why: 'stuck' })
    await expect(stillClaimed(serverActions, granted, ['a'])).rejects.toEqual(lost)
    await expect(renewed(store, id, 60_000)).rejects.toEqual(lost)
    await expect(renewed(store, '9.99', 60_000)).rejects.toEqual(refused('lease-not-found'))
  })

  it('is the reason of its end in words too', () => {
    expect(lostError('it is lost', undefined).message).toBe('it is lost')
    expect(lostError('it is lost', { reason: 'expired' }).message).toBe('it is lost: expired')
    const end = { reason: 'revoked', by: 'ops', why: 'stuck' } as const
    expect(lostError('it is lost', end)).toMatchObject({
      message: 'it is lost: revoked (stuck)',
      ...end,
    })
  })
})
