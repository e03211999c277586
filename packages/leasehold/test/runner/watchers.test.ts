import { describe, expect, it } from 'vitest'
import { Kernel } from '../../src/kernel/index.ts'
import type { Notice } from '../../src/port/index.ts'
import { LeaseWatchers, PrefixWatchers } from '../../src/runner/watchers.ts'
import { testStore } from '../../src/testing/index.ts'
import { claimedIn } from './claimed-in.ts'
import { runnerOn, SlowDisk } from './slow-disk.ts'

const turn = () => new Promise((resolve) => setImmediate(resolve))
const types = (notices: readonly Notice[]) => notices.map(({ type }) => type)

const keysIn = (notices: readonly Notice[]) => notices.flatMap(claimedIn)

function kernelWith(keys: readonly string[]): Kernel {
  const kernel = new Kernel()
  for (const key of keys) kernel.grant({ holder: 'a', ttl: 1000, claims: [{ key }] }, 1)
  return kernel
}

describe('watches of prefixes', () => {
  it('are found by the lengths of their prefixes, and removed when they close', () => {
    const kernel = kernelWith([])
    const watchers = new PrefixWatchers(kernel.events)
    const heard: Notice[] = []
    const add = (prefix: string) =>
      watchers.add(prefix, kernel.events.next, (notice) => heard.push(notice))
    const one = add('ab')
    const two = add('ab')
    const three = add('abcdef')
    const four = add('')
    for (const watcher of [one, two, three, four]) watcher.notify({ type: 'watching', revision: 0 })
    heard.length = 0
    const grant = (key: string) => {
      kernel.grant({ holder: 'a', ttl: 1000, claims: [{ key }] }, 1)
      watchers.sendUpTo(kernel.events.next)
      return keysIn(heard.splice(0))
    }
    expect(watchers.size).toBe(3)
    expect(watchers.all()).toHaveLength(4)
    expect(grant('ab')).toEqual(['ab', 'ab', 'ab'])
    expect(grant('a')).toEqual(['a'])
    expect(grant('abcdef')).toEqual(['abcdef', 'abcdef', 'abcdef', 'abcdef'])
    one.close()
    expect(watchers.size).toBe(3)
    expect(grant('abc')).toEqual(['abc', 'abc'])
    two.close()
    three.close()
    expect(watchers.size).toBe(1)
    expect(grant('abcdefg')).toEqual(['abcdefg'])
    four.close()
    expect(watchers.size).toBe(0)
    expect(watchers.all()).toEqual([])
    expect(grant('ab')).toEqual([])
    const again = add('ab')
    again.notify({ type: 'watching', revision: 0 })
    expect(grant('ab')).toEqual(['ab'])
  })

  it('get the earlier events from their number on, and only matching ones', () => {
    const kernel = kernelWith(['a/1', 'b/1', 'a/2'])
    const watchers = new PrefixWatchers(kernel.events)
    const heard: Notice[] = []
    const first = kernel.events.after(1)
    const watcher = watchers.add('a/', first, (notice) => heard.push(notice))
    watcher.notify({ type: 'watching', revision: 1 })
    expect(keysIn(heard)).toEqual(['a/2'])
    watchers.sendUpTo(kernel.events.next)
    watchers.sendUpTo(kernel.events.next - 1)
    expect(keysIn(heard)).toEqual(['a/2'])
  })

  it('get no event from before their number, even if it was not sent yet', () => {
    const kernel = kernelWith([])
    const watchers = new PrefixWatchers(kernel.events)
    kernel.grant({ holder: 'a', ttl: 1000, claims: [{ key: 'old' }] }, 1)
    const heard: Notice[] = []
    const watcher = watchers.add('', kernel.events.next, (notice) => heard.push(notice))
    kernel.grant({ holder: 'a', ttl: 1000, claims: [{ key: 'new' }] }, 1)
    watchers.sendUpTo(kernel.events.next)
    expect(heard).toEqual([])
    watcher.notify({ type: 'watching', revision: 1 })
    expect(types(heard)).toEqual(['watching', 'events'])
    expect(keysIn(heard)).toEqual(['new'])
  })
})

describe('watches of leases', () => {
  it('are removed when they close, but not the later watches of the same slot', () => {
    const watchers = new LeaseWatchers()
    const one = watchers.add(3, () => {})
    const two = watchers.add(3, () => {})
    one.close()
    expect([...watchers.of(3)!]).toEqual([two])
    two.close()
    expect(watchers.of(3)).toBeUndefined()
    const old = watchers.add(3, () => {})
    expect([...watchers.take(3)!]).toEqual([old])
    const next = watchers.add(3, () => {})
    old.close()
    expect(watchers.all()).toEqual([next])
    next.close()
    expect(watchers.all()).toEqual([])
  })
})

describe('a watch', () => {
  it('gets nothing after it was closed', async () => {
    const { store } = testStore()
    const heard: Notice[] = []
    const watch = store.watch({ prefix: '' }, (notice) => heard.push(notice))
    await turn()
    watch.close()
    watch.close()
    await store.grant({ holder: 'a', ttl: 1000, claims: [{ key: 'k' }] })
    await turn()
    await store.close()
    expect(types(heard)).toEqual(['watching'])
  })

  it('is notified once that the store is closed, whether it has begun or not', async () => {
    const disk = new SlowDisk()
    const runner = runnerOn(disk)
    const begun: Notice[] = []
    runner.watch({ prefix: '' }, (notice) => begun.push(notice))
    const granting = runner.grant({ holder: 'a', ttl: 1000 })
    await turn()
    disk.sync()
    const granted = await granting
    const lease = granted.outcome === 'granted' ? granted.lease : ''
    await turn()
    void runner.grant({ holder: 'b', ttl: 1000, claims: [{ key: 'k' }] })
    const underWay: Notice[] = []
    runner.watch({ lease }, (notice) => underWay.push(notice))
    const never: Notice[] = []
    runner.watch({ lease: '9.9' }, (notice) => never.push(notice))
    await turn()
    const waiting: Notice[] = []
    runner.watch({ prefix: 'x' }, (notice) => waiting.push(notice))
    const other: Notice[] = []
    runner.watch({ lease: '8.8' }, (notice) => other.push(notice))
    disk.close = async () => {}
    await runner.close()
    disk.sync()
    await turn()
    expect(types(begun)).toEqual(['watching', 'interrupted'])
    for (const heard of [underWay, never, waiting, other])
      expect(types(heard)).toEqual(['interrupted'])
  })

  it('of an ended lease says so and ends', async () => {
    const { store } = testStore()
    const heard: Notice[] = []
    store.watch({ lease: '9.9' }, (notice) => heard.push(notice))
    await turn()
    await store.close()
    expect(types(heard)).toEqual(['gone'])
  })

  it('resumes from any revision that the store still has', async () => {
    const { store } = testStore({ tokensAbove: 100 })
    for (let round = 0; round < 8; round++) {
      await store.grant({ holder: 'a', ttl: 1000, claims: [{ key: `k/${round}` }] })
    }
    const { revision } = await store.read({ key: 'k/0' })
    const hear = async (from: number | undefined) => {
      const heard: Notice[] = []
      const watch = store.watch({ prefix: '', from }, (notice) => heard.push(notice))
      await turn()
      watch.close()
      return [...types(heard), ...keysIn(heard)]
    }
    expect(await hear(undefined)).toEqual(['watching'])
    expect(await hear(revision)).toEqual(['watching'])
    expect(await hear(revision + 1)).toEqual(['compacted'])
    expect(await hear(revision - 1)).toEqual(['watching', 'events', 'k/7'])
    expect(await hear(99)).toEqual(['compacted'])
    expect(await hear(100)).toHaveLength(10)
  })

  it('is notified of a change that could not be written at first, once it is written', async () => {
    const disk = new SlowDisk()
    const runner = runnerOn(disk)
    const heard: Notice[] = []
    runner.watch({ prefix: '' }, (notice) => heard.push(notice))
    await turn()
    const granted = runner.grant({ holder: 'a', ttl: 1000, claims: [{ key: 'k' }] })
    const failed = expect(granted).rejects.toThrow('the disk failed')
    await turn()
    disk.fail()
    await failed
    await turn()
    expect(keysIn(heard)).toEqual([])
    disk.sync()
    await turn()
    expect(keysIn(heard)).toEqual(['k'])
  })

  it('is not notified of a change that was never written before the store was closed', async () => {
    const disk = new SlowDisk()
    const runner = runnerOn(disk)
    const heard: Notice[] = []
    runner.watch({ prefix: '' }, (notice) => heard.push(notice))
    await turn()
    runner.grant({ holder: 'a', ttl: 1000, claims: [{ key: 'k' }] }).catch(() => {})
    await turn()
    disk.close = async () => {}
    await runner.close()
    disk.fail()
    await turn()
    expect(types(heard)).toEqual(['watching', 'interrupted'])
    disk.sync()
    await turn()
    expect(keysIn(heard)).toEqual([])
  })
})
