import { memoryStore } from 'leasehold/memory'
import { type Event, isLeaseholdError, type LeaseStore } from 'leasehold/port'
import { TestClock } from 'leasehold/testing'
import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import { loadKeys, loadLeases, watchFrom } from '../../../dashboard/live/load-store.ts'
import { Mirror } from '../../../dashboard/model/mirror.ts'
import { KeyTree, type TreeNode } from '../../../dashboard/model/trees/key-tree.ts'
import { SortedNames } from '../../../dashboard/model/trees/sorted-names.ts'
import { VisibleRows } from '../../../dashboard/model/trees/visible-rows.ts'
import { StoreObserver } from '../../../src/operations/index.ts'

/** Numbers that look random, and are the same each time. */
function chances(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

/** A mirror as in a page: it has read everything, and gets every later change. */
async function mirrorOf(store: LeaseStore) {
  const mirror = new Mirror()
  const before: Event[] = []
  const missed = { times: 0 }
  const read = await loadKeys(store, '', mirror, () => {})
  await loadLeases(store, mirror, () => {})
  const watch = watchFrom(store, '', read, {
    now: (event) => mirror.apply(event),
    before: (event) => void before.push(event),
    received: () => {},
    missed: () => void missed.times++,
    broken: () => {},
  })
  return { mirror, before, missed, watch }
}

describe('names in their order', () => {
  it('are in sorted order after any changes', () => {
    const names = new SortedNames()
    const there = new Set<string>()
    const chance = chances(7)
    for (let round = 0; round < 400; round++) {
      for (let change = chance(5); change >= 0; change--) {
        const name = `k${chance(60)}`
        if (there.delete(name)) names.delete(name)
        else {
          there.add(name)
          names.add(name)
        }
      }
      expect(names.size).toBe(there.size)
      if (chance(3) === 0) expect(names.list()).toEqual([...there].sort())
    }
  })
})

describe('the tree of keys', () => {
  it('counts keys and waiters on every level, and forgets empty ones', () => {
    const tree = new KeyTree()
    for (const key of ['a/b/1', 'a/b/2', 'a/c', 'a', '/odd']) tree.add(key)
    tree.wait('a/b/2', 3)
    expect(tree.root.keys).toBe(5)
    expect(tree.find('a')).toMatchObject({ keys: 4, waiting: 3, isKey: true })
    expect(tree.find('a/b')).toMatchObject({ keys: 2, waiting: 3, isKey: false })
    tree.wait('a/b/2', -3)
    for (const key of ['a/b/1', 'a/b/2']) tree.delete(key)
    expect(tree.find('a/b')).toBeUndefined()
    expect(tree.find('a')).toMatchObject({ keys: 2, waiting: 0 })
    expect(tree.find('/odd')).toMatchObject({ isKey: true })
  })
})

describe('the tree of keys, with chains of folders as one row each', () => {
  it('shows a row by its number as if all rows were laid out', () => {
    const tree = new KeyTree()
    const chance = chances(5)
    const part = () => 'abc'[chance(3)]!
    const keys = Array.from({ length: 60 }, () =>
      Array.from({ length: 1 + chance(7) }, part).join('/'),
    )
    const lines = new VisibleRows(tree)
    const laidOut = () => {
      const all: string[] = []
      const walk = (node: TreeNode, depth: number) => {
        for (const name of node.names?.list() ?? []) {
          let child = node.children!.get(name)!
          for (;;) {
            const [only, ...more] = [...(child.children?.values() ?? [])]
            if (child.isKey || more.length > 0 || only?.children === undefined) break
            child = only
          }
          all.push(`${depth} ${child.path}`)
          if (lines.open.has(child.path)) walk(child, depth + 1)
        }
      }
      walk(tree.root, 0)
      return all
    }
    for (let round = 0; round < 200; round++) {
      const key = keys[chance(keys.length)]!
      if (tree.find(key)?.isKey) tree.delete(key)
      else tree.add(key)
      lines.layOut()
      const row = lines.at(chance(lines.length))
      if (row?.node.children !== undefined) lines.toggle(row.node, !row.isOpen)
      const wanted = laidOut()
      const shown = wanted.map((_, at) => `${lines.at(at)!.depth} ${lines.at(at)!.node.path}`)
      expect(shown).toEqual(wanted)
      expect(lines.length).toBe(wanted.length)
      for (const [at, line] of wanted.entries()) {
        const path = line.split(' ')[1]!
        expect(lines.indexOf(path)).toBe(at)
        const above = lines.above(tree.find(path)!)
        if (above !== undefined) expect(wanted.slice(0, at).join()).toContain(` ${above}`)
      }
    }
  })

  it('stays open if a key appears between two folders of a chain', () => {
    const tree = new KeyTree()
    tree.add('a/b/c/1')
    const lines = new VisibleRows(tree)
    lines.toggle(lines.at(0)!.node, true)
    expect([0, 1].map((at) => lines.at(at)!.node.path)).toEqual(['a/b/c', 'a/b/c/1'])
    tree.add('a/2')
    lines.layOut()
    const all = Array.from({ length: lines.length }, (_, at) => lines.at(at)!.node.path)
    expect(all).toEqual(['a', 'a/2', 'a/b/c', 'a/b/c/1'])
  })
})

describe('the mirror of a store', () => {
  it('leaves out the lease that measures how late leases expire', async () => {
    const clock = new TestClock()
    const store = memoryStore({ clock })
    const observer = new StoreObserver(store, clock, pino({ level: 'silent' }))
    const probed = observer.probeExpiry()
    await store.grant({ holder: 'ada', ttl: 60_000 })
    expect((await store.read({ leases: true })).leases).toHaveLength(2)
    const { mirror, watch } = await mirrorOf(store)
    expect([...mirror.holders.keys()]).toEqual(['ada'])
    expect(mirror.leases.size).toBe(1)
    await clock.advance(1000)
    expect(await probed).toBe(0)
    watch.close()
    await store.close()
  })

  it.each([1, 2, 3, 4])('equals the store after any changes (seed %i)', async (seed) => {
    const clock = new TestClock()
    const store = memoryStore({ clock })
    const chance = chances(seed)
    const leases: string[] = []
    const claims: { lease: string; key: string; token: number }[] = []
    const change = async () => {
      const kind = chance(10)
      const lease = leases[chance(leases.length)]
      if (kind < 2 || lease === undefined) {
        const granted = await store.grant({ holder: `h${chance(5)}`, ttl: 500 + chance(5000) })
        if (granted.outcome === 'granted') leases.push(granted.lease)
      } else if (kind < 7) {
        const key = `${['a', 'b', 'c/d'][chance(3)]}/${chance(6)}`
        const shared = chance(3) === 0 ? ({ mode: 'shared', limit: 2 } as const) : {}
        const made = await store.claim({ lease, claims: [{ key, ...shared }] })
        if (made.outcome === 'claimed') claims.push({ lease, key, token: made.token })
      } else if (kind < 8) await store.renew(leases)
      else if (kind < 9) {
        const { lease: own, key, token } = claims[chance(claims.length)] ?? {}
        if (key) await store.release({ lease: own!, keys: [key], token: token! })
      } else await clock.advance(chance(800))
    }
    const changes = async (times: number) => {
      for (let at = 0; at < times; at++) {
        await change().catch((error) => {
          if (!isLeaseholdError(error)) throw error
        })
      }
    }
    await changes(60)
    const { mirror, missed } = await mirrorOf(store)
    await changes(150)
    await clock.advance(0)
    const { keys } = await store.read({ prefix: '', limit: 10_000 })
    const shown = [...mirror.keys.values()].sort((a, b) => (a.key < b.key ? -1 : 1))
    expect(missed.times).toBe(0)
    expect(shown.map(({ key }) => key)).toEqual(keys.map(({ key }) => key))
    for (const { key, held, count, claims: own } of shown) {
      const line = await store.read({ key, limit: 10_000 })
      expect({ key, held, count }).toEqual({ key, held: line.holders, count: line.count })
      expect(own.map(({ token }) => token)).toEqual(line.claims.map(({ token }) => token))
    }
    const waiting = keys.reduce((sum, it) => sum + it.count - it.holders, 0)
    expect(mirror.waiting).toBe(waiting)
    expect(mirror.tree.root).toMatchObject({ keys: keys.length, waiting })
    for (const row of shown)
      for (const claim of row.claims.slice(0, row.held)) {
        expect(claim.heldSince).toBeGreaterThanOrEqual(claim.claimedAt)
      }
  })

  it('gets changes from before its read, and later ones only once', async () => {
    const store = memoryStore({ clock: new TestClock() })
    await store.grant({ holder: 'a', ttl: 1000, claims: [{ key: 'old' }] })
    const { mirror, before } = await mirrorOf(store)
    await store.grant({ holder: 'b', ttl: 1000, claims: [{ key: 'new' }] })
    await new Promise((resolve) => setImmediate(resolve))
    expect(before.map(({ type, key }) => `${type} ${key}`)).toEqual(['claimed old', 'held old'])
    expect([...mirror.keys.keys()]).toEqual(['old', 'new'])
    expect(mirror.keys.get('old')).toMatchObject({ count: 1, held: 1 })
  })

  it('knows the leases of a holder, and those under a lease', async () => {
    const clock = new TestClock()
    const store = memoryStore({ clock })
    const parent = await store.grant({ holder: 'node', ttl: 10_000 })
    if (parent.outcome === 'busy') throw new Error('busy')
    const child = { holder: 'node', ttl: 10_000, parent: parent.lease, claims: [{ key: 'k' }] }
    await store.grant(child)
    const { mirror } = await mirrorOf(store)
    expect(mirror.holders.get('node')?.size).toBe(2)
    const [under] = mirror.childrenOf(parent.lease)
    expect(mirror.leases.get(under!)?.keys).toEqual(['k'])
    await store.revoke({ target: { lease: parent.lease } })
    await clock.advance(0)
    expect(mirror.keys.size).toBe(0)
  })

  it('has a complete queue that is longer than a page shows', async () => {
    const store = memoryStore({ clock: new TestClock() })
    for (let at = 0; at < 40; at++) {
      await store.grant({ holder: `w${at}`, ttl: 10_000, claims: [{ key: 'busy' }] })
    }
    const { mirror } = await mirrorOf(store)
    expect(mirror.keys.get('busy')?.claims).toHaveLength(40)
  })
})
