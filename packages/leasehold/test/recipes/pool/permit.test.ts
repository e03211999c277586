import { describe, expect, it } from 'vitest'
import { LeaseholdError } from '../../../src/index.ts'
import { HeldPermit } from '../../../src/recipes/pool/permit.ts'
import { requestOf } from '../../../src/recipes/pool/request.ts'
import { TestClock } from '../../../src/testing/index.ts'

const NOTICE = { by: 'b', tenant: 'y', priority: 5, period: 300 }

/** A permit whose store returns these claims, and what was recorded for it. */
function scene(read: (query: unknown) => Promise<unknown>) {
  const clock = new TestClock(5000)
  const stop = new AbortController()
  const opened: { since: number }[] = []
  const closed: { since: number; kind: string | undefined }[] = []
  const hold = {
    state: 'held',
    keys: ['k0', 'k1'],
    claimToken: 7,
    signal: stop.signal,
    release: async () => {},
  }
  const pool = {
    client: { now: () => clock.now(), store: { read } },
    halfLife: 1000,
    ended: () => {},
    records: {
      opened: ({ since }: { since: number }) => opened.push({ since }),
      closed: async ({ since }: { since: number }, kind: string | undefined) =>
        void closed.push({ since, kind }),
    },
  }
  const request = requestOf({ tenant: 't', kind: 'work' })
  const taken = { hold, request, waiter: undefined, resources: ['g'], cost: 1 }
  const permit = new HeldPermit(pool as never, taken as never)
  return { clock, stop, hold, permit, opened, closed }
}

const claims = (...own: { token: number; claimedAt: number }[]) => Promise.resolve({ claims: own })

describe('the usage record of a permit', () => {
  it('uses the clock of the store', async () => {
    let asked: unknown
    const { clock, opened } = scene((query) => {
      asked = query
      return claims({ token: 6, claimedAt: 40 }, { token: 7, claimedAt: 41 })
    })
    await clock.settle()
    expect([asked, opened]).toEqual([{ key: 'k0' }, [{ since: 41 }]])
  })

  it.each([
    ['does not know of it any more', () => claims({ token: 6, claimedAt: 40 })],
    ['cannot be asked', () => Promise.reject(new Error('no answer'))],
  ])('goes by the clock of this process if the store %s', async (_, read) => {
    const { clock, opened } = scene(read)
    await clock.settle()
    expect(opened).toEqual([{ since: 5000 }])
  })

  it('is not opened if the permit ended before the time was known', async () => {
    let answer: (found: unknown) => void = () => {}
    const { clock, permit, opened, closed } = scene(() => new Promise((done) => (answer = done)))
    const released = permit.release()
    answer({ claims: [{ token: 7, claimedAt: 41 }] })
    await released
    await clock.settle()
    expect([opened, closed]).toEqual([[], [{ since: 41, kind: 'work' }]])
  })

  it.each([
    ['learns from what ran out', 'expired', 'work'],
    ['learns nothing from what was taken by force', 'revoked', undefined],
  ] as const)('%s', async (_, reason, kind) => {
    const { clock, stop, closed } = scene(() => claims({ token: 7, claimedAt: 41 }))
    stop.abort(new LeaseholdError('lost', 'it is lost', { reason }))
    await clock.settle()
    expect(closed).toEqual([{ since: 41, kind }])
  })
})

describe('a permit', () => {
  it.each([
    ['held', true],
    ['lapsed', true],
    ['lost', false],
    ['released', false],
  ])('that is %s gets a preemption notice: %s', async (state, isTold) => {
    const { permit, hold } = scene(() => claims())
    hold.state = state
    permit.notify(NOTICE)
    expect([permit.notice.aborted, permit.notice.reason]).toEqual(
      isTold ? [true, NOTICE] : [false, undefined],
    )
  })

  it('that is lost is recorded without waiting for the store', async () => {
    const { clock, stop, hold, permit } = scene(() => new Promise(() => {}))
    hold.state = 'lost'
    stop.abort(new LeaseholdError('lost', 'it is lost', { reason: 'expired' }))
    let isReturned = false
    void permit.release().then(() => (isReturned = true))
    await clock.settle()
    expect(isReturned).toBe(true)
  })
})
