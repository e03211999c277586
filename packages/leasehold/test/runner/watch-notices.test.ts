import { afterEach, describe, expect, it, vi } from 'vitest'
import type { Event, Notice } from '../../src/port/index.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { claimedIn } from './claimed-in.ts'
import { runnerOn, SlowDisk } from './slow-disk.ts'

const turn = () => new Promise((resolve) => setImmediate(resolve))

afterEach(() => vi.restoreAllMocks())

describe('watches', () => {
  it('are all notified, even if one of them fails', async () => {
    const warning = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
    const store = memoryStore()
    const heard: Notice[] = []
    store.watch({ prefix: '' }, () => {
      throw new Error('this one fails')
    })
    store.watch({ prefix: '' }, (notice) => heard.push(notice))
    await store.grant({ holder: 'a', ttl: 1000, claims: [{ key: 'k' }] })
    await turn()
    await store.grant({ holder: 'a', ttl: 1000, claims: [{ key: 'l' }] })
    await turn()
    expect(heard.map(({ type }) => type)).toEqual(['watching', 'events', 'events'])
    expect(warning).toHaveBeenCalledWith(expect.objectContaining({ message: 'this one fails' }))
    await store.close()
  })

  it('are notified of nothing before it is durable', async () => {
    const disk = new SlowDisk()
    const runner = runnerOn(disk)
    const heard: Event[] = []
    runner.watch({ prefix: '' }, (notice) => {
      if (notice.type === 'events') heard.push(...notice.events)
    })
    await turn()
    void runner.grant({ holder: 'a', ttl: 1000, claims: [{ key: 'k' }] })
    await turn()
    expect(heard).toEqual([])
    disk.sync()
    await turn()
    expect(heard.map(({ type, key }) => `${type} ${key}`)).toEqual(['claimed k', 'held k'])
    await runner.close()
  })

  it('cannot resume from long ago: a store without watches drops its old events, too', async () => {
    const store = memoryStore({ limits: { events: 64 } })
    for (let at = 0; at < 200; at++) {
      await store.grant({ holder: 'a', ttl: 1000, claims: [{ key: `k${at}` }] })
    }
    const heard: Notice[] = []
    store.watch({ prefix: '', from: 0 }, (notice) => heard.push(notice))
    await turn()
    expect(heard.map(({ type }) => type)).toEqual(['compacted'])
    await store.close()
  })

  it('are notified of nothing twice, after a time without watches', async () => {
    const disk = new SlowDisk()
    const runner = runnerOn(disk)
    const first = runner.watch({ prefix: '' }, () => {})
    await turn()
    void runner.grant({ holder: 'a', ttl: 1000, claims: [{ key: 'one' }] })
    // The watch is closed while the first change is being written, and a second change is made.
    first.close()
    void runner.grant({ holder: 'a', ttl: 1000, claims: [{ key: 'two' }] })
    const heard: string[] = []
    runner.watch({ prefix: '', from: 0 }, (notice) => {
      heard.push(...claimedIn(notice))
    })
    await turn()
    disk.sync()
    await turn()
    void runner.grant({ holder: 'a', ttl: 1000, claims: [{ key: 'three' }] })
    await turn()
    disk.sync()
    await turn()
    expect(heard).toEqual(['one', 'two', 'three'])
    await runner.close()
  })
})
