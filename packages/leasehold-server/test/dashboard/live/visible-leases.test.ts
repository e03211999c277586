import {
  type Lease,
  LeaseholdError,
  type LeaseStore,
  type Notice,
  type Observer,
} from 'leasehold/port'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { VisibleLeases } from '../../../dashboard/live/visible-leases.ts'
import { rhythmOf } from '../../../dashboard/model/heartbeats.ts'
import { Mirror } from '../../../dashboard/model/mirror.ts'

const NEVER = Infinity

function leaseOf(id: string, more: Partial<Lease> = {}): Lease {
  const times = { grantedAt: 0, renewedAt: 0, until: 20_000, endOfLife: NEVER }
  const counts = { claims: 0, children: 0 }
  return { id, holder: 'ada', ttl: 20_000, grace: 0, labels: {}, ...times, ...counts, ...more }
}

/** A store with these leases, which records its reads. */
class FakeStore {
  readonly asked: string[] = []
  refusal: Error | undefined
  readonly observers = new Map<string, Observer>()
  readonly leases = new Map<string, Lease>()

  async read({ lease: id }: { readonly lease: string }) {
    this.asked.push(id)
    if (this.refusal !== undefined) throw this.refusal
    return { revision: 1, lease: this.leases.get(id), end: undefined, claims: [] }
  }

  watch({ lease }: { readonly lease: string }, observer: Observer) {
    this.observers.set(lease, observer)
    return { close: () => void this.observers.delete(lease) }
  }

  tell(lease: string, notice: Notice): void {
    this.observers.get(lease)?.(notice)
  }
}

describe('the state of visible leases', () => {
  let mirror: Mirror
  let store: FakeStore
  let visibleLeases: VisibleLeases
  let now = 0

  beforeEach(() => {
    vi.stubGlobal('requestAnimationFrame', () => 0)
    now = 16_000
    mirror = new Mirror()
    store = new FakeStore()
    visibleLeases = new VisibleLeases(mirror, () => now)
    visibleLeases.open(store as unknown as LeaseStore)
  })

  afterEach(() => vi.unstubAllGlobals())

  const settle = () => new Promise((resolve) => setTimeout(resolve))
  const look = async (...seen: string[]) => {
    for (const id of seen) visibleLeases.show(id)
    visibleLeases.update()
    await settle()
  }

  it('is unknown until it was read, because heartbeats were not reported before', async () => {
    mirror.putLease(leaseOf('1'))
    store.leases.set('1', leaseOf('1', { renewedAt: 15_000, until: 35_000 }))
    expect(visibleLeases.show('1')).toBeUndefined()
    await look('1')
    expect(visibleLeases.show('1')).toMatchObject({ until: 35_000 })
    await look('1')
    await look('1')
    expect(store.asked).toEqual(['1'])
  })

  it('is read again when it is visible again, but not after one missed frame', async () => {
    store.leases.set('1', leaseOf('1', { until: 35_000 }))
    mirror.putLease(leaseOf('1'))
    await look('1')
    await look()
    await look('1')
    expect(store.asked).toEqual(['1'])
    for (let times = 0; times < 12; times++) await look()
    expect(store.observers.size).toBe(0)
    expect(visibleLeases.show('1')).toBeUndefined()
    await look('1')
    expect(store.asked).toEqual(['1', '1'])
  })

  it('is read for a few at a time, one after the other without a pause', async () => {
    const ids = Array.from({ length: 40 }, (_, at) => String(at))
    for (const id of ids) {
      mirror.putLease(leaseOf(id))
      store.leases.set(id, leaseOf(id, { until: 35_000 }))
    }
    await look(...ids)
    await settle()
    expect(store.asked).toHaveLength(40)
  })

  it('has the last deadline, and who set it, as soon as the store reports it', async () => {
    mirror.putLease(leaseOf('1'))
    store.leases.set('1', leaseOf('1', { until: 35_000 }))
    await look('1')
    store.leases.set('1', leaseOf('1', { until: 35_000, endOfLife: 40_000 }))
    const end = { reason: 'broken', by: 'ann', why: 'it moves' } as const
    store.tell('1', { type: 'capped', remaining: 24_000, end })
    await settle()
    visibleLeases.heartbeat('1', 30_000)
    expect(visibleLeases.show('1')).toMatchObject({ renewedAt: 30_000, until: 40_000 })
    expect(visibleLeases.breakOf('1')).toEqual(end)
  })

  it('comes from the list of leases if the lease may not be read, which is tried once', async () => {
    mirror.putLease(leaseOf('1'))
    store.refusal = new LeaseholdError('forbidden', 'not yours')
    await look('1')
    now += 60_000
    await look('1')
    expect(visibleLeases.show('1')).toMatchObject({ until: 20_000 })
    expect(store.asked).toEqual(['1'])
  })

  it('is not read while the server is away, and completely when it is back', async () => {
    mirror.putLease(leaseOf('1'))
    store.leases.set('1', leaseOf('1', { until: 35_000 }))
    await look('1')
    visibleLeases.setOffline(true)
    mirror.putLease(leaseOf('2'))
    await look('1', '2')
    expect(store.asked).toEqual(['1'])
    expect(visibleLeases.show('1')).toBeDefined()
    visibleLeases.setOffline(false)
    now += 5000
    await look('1', '2')
    expect(store.asked).toEqual(['1', '1', '2'])
  })

  it('has no gap in its heartbeats while the server was away, because none were reported', async () => {
    store.leases.set('1', leaseOf('1', { until: 35_000 }))
    await look('1')
    for (const at of [1000, 2000, 3000]) visibleLeases.heartbeat('1', at)
    visibleLeases.setOffline(true)
    visibleLeases.setOffline(false)
    for (const at of [60_000, 61_000, 62_000]) visibleLeases.heartbeat('1', at)
    expect(rhythmOf(visibleLeases.heartbeatsOf('1'))).toMatchObject({ every: 1000, longest: 1000 })
  })

  it('stays known when a long queue that it waits in is read again', async () => {
    const ids = Array.from({ length: 300 }, (_, at) => String(at))
    const claims = ids.map((lease, token) => ({
      ...{ key: 'jobs/1', token, lease, holder: 'ada', mode: 'exclusive' as const },
      ...{ claimedAt: 0, until: 35_000 },
    }))
    const entry = { key: 'jobs/1', claims, holders: 1, count: claims.length }
    mirror.put(entry as never, 1)
    store.leases.set('250', leaseOf('250', { until: 35_000 }))
    await look('250')
    mirror.put(entry as never, 2)
    expect(visibleLeases.show('250')).toMatchObject({ until: 35_000 })
    expect(mirror.leases.get('250')?.keys).toEqual(['jobs/1'])
  })
})
