import { memoryStore } from 'leasehold/memory'
import type { LeaseStore } from 'leasehold/port'
import { TestClock } from 'leasehold/testing'
import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import { LevelCounter } from '../../src/dashboard/level-counter.ts'
import { StoreObserver } from '../../src/operations/index.ts'
import { changedStore } from '../setup/changed-store.ts'

const grant = (store: LeaseStore, holder: string, keys: readonly string[]) =>
  store.grant({ holder, ttl: 60_000, claims: keys.map((key) => ({ key })) })

describe('the counts of a store', () => {
  it('have its leases, keys, holders and waiters', async () => {
    const store = memoryStore()
    await grant(store, 'ada', ['a', 'b'])
    await grant(store, 'ada', ['c'])
    await grant(store, 'bo', ['a'])
    const counter = new LevelCounter(store)
    await counter.step()
    expect(counter.levels).toEqual({ leases: 3, keys: 3, holders: 2, waiting: 1 })
    await store.close()
  })

  it('leave out the lease that measures how late leases expire', async () => {
    const clock = new TestClock()
    const store = memoryStore({ clock })
    const observer = new StoreObserver(store, clock, pino({ level: 'silent' }))
    const probed = observer.probeExpiry()
    await grant(store, 'ada', ['a'])
    expect((await store.read({ leases: true })).leases).toHaveLength(2)
    const counter = new LevelCounter(store)
    await counter.step()
    expect(counter.levels).toEqual({ leases: 1, keys: 1, holders: 1, waiting: 0 })
    await clock.advance(1000)
    expect(await probed).toBe(0)
    await store.close()
  })

  it('of a large one are complete after several steps, each of two reads at most', async () => {
    const store = memoryStore()
    for (let at = 0; at < 2500; at++) await grant(store, `h${at % 10}`, [`k${at}`])
    let reads = 0
    const counted = changedStore(store, {
      read: ((query: never) => {
        reads++
        return store.read(query)
      }) as LeaseStore['read'],
    })
    const counter = new LevelCounter(counted)
    for (let step = 1; counter.levels === undefined; step++) {
      await counter.step()
      expect(reads).toBeLessThanOrEqual(2 * step)
      expect(step).toBeLessThan(10)
    }
    expect(counter.levels).toEqual({ leases: 2500, keys: 2500, holders: 10, waiting: 0 })
    await store.close()
  })
})
