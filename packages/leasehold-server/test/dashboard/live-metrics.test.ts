import { memoryStore } from 'leasehold/memory'
import type { LeaseStore } from 'leasehold/port'
import { TestClock } from 'leasehold/testing'
import { pino } from 'pino'
import { afterEach, describe, expect, it } from 'vitest'
import type { FeedMessage, Sample } from '../../src/dashboard/feed-messages.ts'
import { LiveMetrics, type Viewer } from '../../src/dashboard/live-metrics.ts'
import { measuredStore } from '../../src/operations/index.ts'

/** A viewer, with all samples that it received, including past ones. */
class TestViewer implements Viewer {
  readonly follows = new Set<string>()
  samples: Sample[] = []

  send(message: FeedMessage): void {
    if (message.type === 'history') this.samples = [...message.samples]
    else if (message.type === 'sample') this.samples.push(message.sample)
  }

  get lags(): (number | undefined)[] {
    return this.samples.map(({ expiryLag }) => expiryLag)
  }
}

describe('how late leases expire, second by second', () => {
  const clock = new TestClock()
  let liveMetrics: LiveMetrics
  let inner: LeaseStore

  const begin = (change: (store: LeaseStore) => Partial<LeaseStore> = () => ({})) => {
    const store = memoryStore({ clock })
    inner = store
    const unmeasured: LeaseStore = { ...bound(store), ...change(store) }
    const measured = measuredStore(store, clock)
    const dependencies = { clock, log: pino({ level: 'silent' }), stats: { connections: 0 } }
    liveMetrics = new LiveMetrics({
      ...{ store: measured, unmeasured, ...dependencies },
      demo: () => 'off',
    } as unknown as ConstructorParameters<typeof LiveMetrics>[0])
    liveMetrics.start()
  }

  afterEach(() => liveMetrics.close())

  it('has a gap while nobody watched, and gives no old value to the next viewer', async () => {
    begin()
    const first = new TestViewer()
    liveMetrics.enter(first)
    await clock.advance(10_000)
    expect(first.lags.at(-1)).toBeDefined()
    liveMetrics.leave(first)
    await clock.advance(60_000)
    const next = new TestViewer()
    liveMetrics.enter(next)
    expect(next.samples).toHaveLength(70)
    expect(next.lags.slice(11)).toEqual(Array(59).fill(undefined))
    await clock.advance(1000)
    expect(next.lags.at(-1)).toBeUndefined()
    await clock.advance(9000)
    expect(next.lags.at(-1)).toBeDefined()
  })

  it('comes with the number of keys and leases before somebody looked', async () => {
    begin()
    await clock.advance(20_000)
    await inner.grant({ holder: 'ada', ttl: 60_000, claims: [{ key: 'a' }] })
    await clock.advance(20_000)
    const first = new TestViewer()
    liveMetrics.enter(first)
    const keys = first.samples.map(({ levels }) => levels?.keys)
    expect([keys[10], keys.at(-1)]).toEqual([0, 1])
  })

  it('is not timed before somebody looks, but the first viewer gets the last ten minutes', async () => {
    begin()
    await clock.advance(11 * 60_000)
    const first = new TestViewer()
    liveMetrics.enter(first)
    expect(first.lags).toEqual(Array(600).fill(undefined))
    expect(first.samples.at(-1)?.at).toBe(clock.now())
    await clock.advance(10_000)
    expect(first.lags.at(-1)).toBeDefined()
  })

  it('grows while the lease that is timed is not seen to end', async () => {
    let isStuck = false
    begin((store) => ({
      watch: (target, observer) =>
        isStuck && 'lease' in target ? { close: () => {} } : store.watch(target, observer),
    }))
    const looker = new TestViewer()
    liveMetrics.enter(looker)
    await clock.advance(10_000)
    expect(looker.lags.at(-1)).toBeLessThan(100)
    isStuck = true
    await clock.advance(30_000)
    expect(looker.lags.at(-1)).toBeGreaterThan(20_000)
    expect(looker.lags.at(-1)).toBeLessThan(30_000)
    expect(looker.lags.at(-2)).toBeLessThan(looker.lags.at(-1)!)
  })

  it('is not known while it cannot be measured', async () => {
    let isAway = false
    begin((store) => ({
      grant: (request) => (isAway ? Promise.reject(new Error('away')) : store.grant(request)),
    }))
    const looker = new TestViewer()
    liveMetrics.enter(looker)
    await clock.advance(10_000)
    isAway = true
    await clock.advance(30_000)
    expect(looker.lags.at(-1)).toBeUndefined()
  })
})

/** A store as an object whose methods can be replaced one by one. */
function bound(store: LeaseStore): LeaseStore {
  const { guarantees } = store
  const names = ['grant', 'renew', 'revoke', 'claim', 'release', 'update', 'read', 'watch', 'close']
  const parts = names.map((name) => {
    const part = store[name as keyof LeaseStore] as () => unknown
    return [name, part.bind(store)]
  })
  return { guarantees, ...Object.fromEntries(parts) } as LeaseStore
}
