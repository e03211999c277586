import { describe, expect, it } from 'vitest'
import { type BrokenEvent, Leasehold } from '../../../src/index.ts'
import type { LeaseStore } from '../../../src/port/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { changedStore } from '../../setup/changed-store.ts'

async function endsOf(store: LeaseStore, key: string) {
  const { tenures } = await store.read({ history: key })
  return tenures.map(({ end: { reason, by, why } }) => ({ reason, by, why }))
}

const BROKEN = { reason: 'broken', by: 'ops', why: 'too slow' }

describe('the history of a key whose lease was broken', () => {
  // A period that is many ttls long ends at any point between two renewals.
  const periods = [...Array.from({ length: 30 }, (_, at) => 500 + at * 1313), 400_000]
  const cases = [60, 1000, 30_000].flatMap((ttl) => periods.map((after) => ({ ttl, after })))

  it.each(cases)('shows it: ttl $ttl ms, period $after ms', async ({ ttl, after }) => {
    const clock = new TestClock()
    const store = memoryStore({ clock })
    const leasehold = await Leasehold.open(store, { clock, holder: 'me' })
    const lock = await leasehold.lock('k', { ttl, grace: ttl / 5 })
    await clock.advance(after % ttl)
    const until = clock.now() + after
    await store.revoke({ target: { lease: lock.lease }, by: 'ops', why: 'too slow', after })
    await clock.advance(after + 1000)
    expect(lock.signal.reason).toMatchObject({ code: 'lost', ...BROKEN })
    expect(await endsOf(store, 'k')).toEqual([BROKEN])
    // The holder stops one in a hundred early, for clocks may differ: the key does not wait longer.
    const [tenure] = (await store.read({ history: 'k' })).tenures
    const early = Math.max(0, after / 100 - store.guarantees.ttl.min)
    expect(tenure!.endedAt).toBeLessThanOrEqual(until - early + store.guarantees.expiryLateness)
    await leasehold.close()
  })

  it('shows whether the holder gave up or released before', async () => {
    const clock = new TestClock()
    const store = memoryStore({ clock })
    const leasehold = await Leasehold.open(store, { clock, holder: 'me' })
    const after = 5000
    const lock = await leasehold.lock('released', { ttl: '10s' })
    await store.revoke({ target: { lease: lock.lease }, by: 'ops', why: 'too slow', after })
    await lock.release()
    const own = await leasehold.lock('given up', { ttl: '10s', maxHold: '10s', wait: '1s' })
    await clock.advance(20_000)
    expect(own.state).toBe('lost')
    expect(await endsOf(store, 'released')).toMatchObject([{ reason: 'released' }])
    expect(await endsOf(store, 'given up')).toMatchObject([{ reason: 'revoked', by: 'me' }])
    await leasehold.close()
  })
})

describe('the holder of a broken lease', () => {
  async function breaks(revoke: { after: number }[], wrap: (store: LeaseStore) => LeaseStore) {
    const clock = new TestClock()
    const store = memoryStore({ clock })
    const leasehold = await Leasehold.open(wrap(store), { clock, holder: 'me' })
    const broken: BrokenEvent[] = []
    leasehold.on('broken', (event) => broken.push(event))
    const { lease } = await leasehold.lock('k', { ttl: '3s' })
    for (const { after } of revoke) {
      await store.revoke({ target: { lease }, by: 'ops', why: 'too slow', after })
      await clock.advance(5000)
    }
    await leasehold.close()
    return { broken, lease }
  }

  /** A store whose lease watches do not report a break. */
  const withoutBreakNotices = (store: LeaseStore): LeaseStore =>
    changedStore(store, {
      watch: (target, observer) =>
        store.watch(target, (notice) => {
          if (notice.type !== 'capped') observer(notice)
        }),
    })

  it.each([
    ['at once', (store: LeaseStore) => store, 6000],
    ['by a renewal in its last ttl, if the notice was lost', withoutBreakNotices, 3000],
  ] as const)('is notified once of its remaining time, %s', async (_how, wrap, most) => {
    const { broken, lease } = await breaks([{ after: 6000 }], wrap)
    expect(broken).toEqual([{ lease, remaining: expect.any(Number), by: 'ops', why: 'too slow' }])
    // 1 % less, because clocks may differ.
    expect(broken[0]!.remaining).toBeLessThanOrEqual(most * 0.99)
    expect(broken[0]!.remaining).toBeGreaterThan(most / 2)
  })

  it('is notified again if it has less time than before', async () => {
    const { broken } = await breaks([{ after: 60_000 }, { after: 20_000 }], (store) => store)
    expect(broken.map(({ remaining }) => Math.round(remaining / 10_000))).toEqual([6, 2])
  })
})
