import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MemoryLog } from '../../../src/log/index.ts'
import {
  type Granted,
  type LeaseStore,
  type Notice,
  systemRandom,
} from '../../../src/port/index.ts'
import { type ReplicaStoreOptions, replicaStore } from '../../../src/replica/index.ts'
import { randomRuns, TestClock } from '../../../src/testing/index.ts'
import { FaultyLog } from './faulty-log.ts'

const limits = { history: 64 }

function world() {
  const shared = new MemoryLog()
  const clock = new TestClock()
  // Ascending names: the replica that joined first also saves snapshots first.
  let names = 0
  const random = { ...systemRandom, id: () => `${++names}`.padStart(22, '0') }
  const open = async (options: ReplicaStoreOptions = {}) => {
    const log = new FaultyLog(shared.open())
    const store = await replicaStore(log, { clock, random, limits, coalesce: 0, ...options })
    return { log, store }
  }
  return { shared, clock, open, tail: () => shared.open().tail() }
}

const hold = async (store: LeaseStore, key: string) =>
  (await store.grant({ holder: 'h', ttl: 60_000, claims: [{ key }] })) as Granted

const keysOf = async (store: LeaseStore) =>
  (await store.read({ prefix: '' })).keys.map(({ key }) => key)

describe('a log that has lost its tail', () => {
  it('gives no token twice, and keeps its other leases', async () => {
    const { shared, clock, open, tail } = world()
    const { store } = await open()
    await hold(store, 'kept')
    const position = await tail()
    const lost = await hold(store, 'lost')
    shared.loseAfter(position)
    const call = hold(store, 'new')
    await clock.advance(1000)
    const next = await call
    expect(next.token).toBeGreaterThan(lost.token)
    expect(await keysOf(store)).toEqual(['kept', 'new'])
    expect(await store.renew([lost.lease])).toMatchObject({ lost: [{ lease: lost.lease }] })
    await store.close()
  })

  it('is noticed by a read, even if no entry is written', async () => {
    const { shared, clock, open, tail } = world()
    const { store } = await open()
    const position = await tail()
    await hold(store, 'lost')
    shared.loseAfter(position)
    const keys = keysOf(store)
    await clock.advance(1000)
    expect(await keys).toEqual([])
    await store.close()
  })

  it('stops a replica if its first entries are lost too, and every later call says why', async () => {
    const { shared, clock, open, tail } = world()
    const { store } = await open()
    const position = await tail()
    await hold(store, 'lost')
    await shared.open().trim(position)
    shared.loseAfter(position)
    const damaged = { code: 'storage-damaged', message: expect.stringContaining('no snapshot') }
    // It was sent before the loss was noticed, so its outcome is unknown.
    const during = expect(hold(store, 'during')).rejects.toMatchObject({
      ...{ code: 'unknown-outcome', message: expect.stringContaining('no snapshot') },
    })
    await clock.advance(10_000)
    await during
    await expect(hold(store, 'after')).rejects.toMatchObject(damaged)
    await expect(store.renew(['1.1'])).rejects.toMatchObject(damaged)
    await expect(store.read({ key: 'a' })).rejects.toMatchObject(damaged)
    await store.close()
  })

  it('is noticed by all replicas, and they agree again', async () => {
    const { shared, clock, open, tail } = world()
    const [one, two, three] = [await open(), await open(), await open()]
    await hold(one.store, 'kept')
    const position = await tail()
    const lost = [
      await hold(one.store, 'a'),
      await hold(two.store, 'b'),
      await hold(three.store, 'c'),
    ]
    shared.loseAfter(position)
    const calls = [one, two, three].map(({ store }, at) => hold(store, `new-${at}`))
    await clock.advance(1000)
    const tokens = (await Promise.all(calls)).map(({ token }) => token)
    expect(Math.min(...tokens)).toBeGreaterThan(Math.max(...lost.map(({ token }) => token)))
    expect(new Set(tokens).size).toBe(3)
    for (const { store } of [one, two, three]) {
      expect(await keysOf(store)).toEqual(['kept', 'new-0', 'new-1', 'new-2'])
    }
    for (const { store } of [one, two, three]) await store.close()
  })

  it('is noticed even if the lost positions were assigned again', async () => {
    const { shared, clock, open, tail } = world()
    const [ahead, behind] = [await open(), await open()]
    await hold(ahead.store, 'kept')
    await clock.advance(0)
    const position = await tail()
    behind.log.isCut = true
    behind.log.interrupt()
    const lost = await hold(ahead.store, 'lost')
    ahead.log.isCut = true
    ahead.log.interrupt()
    shared.loseAfter(position)
    behind.log.isCut = false
    await clock.advance(2000)
    for (let at = 0; at < 5; at++) await hold(behind.store, `new-${at}`)
    ahead.log.isCut = false
    await clock.advance(2000)
    const calls = [hold(ahead.store, 'x'), hold(behind.store, 'y')]
    await clock.advance(2000)
    for (const { token } of await Promise.all(calls)) expect(token).toBeGreaterThan(lost.token)
    const keys = await keysOf(ahead.store)
    expect(keys).toEqual(['kept', ...[0, 1, 2, 3, 4].map((at) => `new-${at}`), 'x', 'y'])
    expect(await keysOf(behind.store)).toEqual(keys)
    for (const { store } of [ahead, behind]) await store.close()
  })

  it('may have lost everything', async () => {
    const { shared, clock, open } = world()
    const { store } = await open()
    const lost = await hold(store, 'lost')
    shared.loseAfter(0)
    const call = hold(store, 'new')
    await clock.advance(1000)
    expect((await call).token).toBeGreaterThan(lost.token)
    expect(await keysOf(store)).toEqual(['new'])
    await store.close()
  })

  it('may have been created again by another process', async () => {
    const { shared, clock, open } = world()
    const { log, store } = await open()
    const lost = await hold(store, 'lost')
    log.isCut = true
    log.interrupt()
    shared.loseAfter(0)
    const other = await open()
    for (let at = 0; at < 5; at++) await hold(other.store, `other-${at}`)
    log.isCut = false
    const calls = [hold(store, 'x'), hold(other.store, 'y')]
    await clock.advance(2000)
    const tokens = (await Promise.all(calls)).map(({ token }) => token)
    expect(tokens[0]).toBeGreaterThan(lost.token)
    expect(await keysOf(store)).toEqual(await keysOf(other.store))
    const next = await hold(other.store, 'z')
    expect(next.token).toBeGreaterThan(lost.token + 2 ** 32)
    await store.close()
    await other.store.close()
  })

  it('may end before its snapshot', async () => {
    const { shared, clock, open } = world()
    const { store } = await open({ snapshotBytes: 500 })
    for (let at = 0; at < 20; at++) {
      await hold(store, `key-${at}`)
      await clock.settle()
    }
    const snapshot = (await shared.open().loadSnapshot())!
    shared.loseAfter(snapshot.position - 4, true)
    const opening = open()
    await clock.advance(2000)
    const other = await opening
    expect((await hold(other.store, 'new')).token).toBeGreaterThan(2 ** 32)
    expect((await keysOf(other.store)).length).toBeGreaterThan(3)
    await store.close()
    await other.store.close()
  })

  it('is refused if both its snapshot and the entries before it are gone', async () => {
    const { shared, clock, open, tail } = world()
    const { store } = await open({ snapshotBytes: 500 })
    for (let at = 0; at < 20; at++) {
      await hold(store, `key-${at}`)
      await clock.settle()
    }
    await store.close()
    await shared.open().trim(await tail())
    shared.loseAfter((await shared.open().loadSnapshot())!.position - 1)
    const opening = open()
    const refused = expect(opening).rejects.toMatchObject({ code: 'storage-damaged' })
    await clock.advance(5000)
    await refused
  })

  it('does not affect replicas that join later', async () => {
    const { shared, clock, open, tail } = world()
    const { store } = await open()
    const position = await tail()
    await hold(store, 'lost')
    shared.loseAfter(position)
    const call = hold(store, 'new')
    await clock.advance(1000)
    const { token } = await call
    const later = await open()
    expect((await hold(later.store, 'later')).token).toBe(token + 1)
    expect(await keysOf(store)).toEqual(['later', 'new'])
    await store.close()
    await later.store.close()
  })

  it('gives each lease its full ttl again, because renewals may be lost', async () => {
    const { shared, clock, open, tail } = world()
    const { log, store } = await open()
    const other = await open()
    const granted = await store.grant({ holder: 'h', ttl: 1000 })
    const { lease } = granted as Granted
    const position = await tail()
    await clock.advance(900)
    other.log.isCut = true
    other.log.interrupt()
    await store.renew([lease])
    shared.loseAfter(position)
    other.log.isCut = false
    const found = other.store.read({ lease })
    const call = hold(store, 'new')
    await clock.advance(90)
    await clock.advance(800)
    await call
    await found.catch(() => {})
    expect((await store.read({ lease })).lease).toBeDefined()
    await clock.advance(1100)
    expect((await store.read({ lease })).lease).toBeUndefined()
    log.interrupt()
    await store.close()
    await other.store.close()
  })

  it('does not let a watch resume from a revision of the lost part', async () => {
    const { shared, clock, open, tail } = world()
    const { store } = await open()
    await hold(store, 'kept')
    const position = await tail()
    const { revision } = await hold(store, 'lost')
    shared.loseAfter(position)
    const call = hold(store, 'new')
    await clock.advance(1000)
    await call
    const notices: Notice[] = []
    store.watch({ prefix: '', from: revision }, (notice) => notices.push(notice))
    await clock.advance(0)
    expect(notices).toMatchObject([{ type: 'compacted' }])
    await store.close()
  })
})

describe('a call without a request id, when the log loses its tail', () => {
  const options = { snapshotBytes: 500, timeout: 60_000 }

  it('is not resent if it may have been applied before the new epoch', async () => {
    const { shared, clock, open, tail } = world()
    const [away, other] = [await open(options), await open(options)]
    away.log.isCut = true
    away.log.interrupt()
    away.log.faults.push('answer lost', ...Array<'lost'>(100).fill('lost'))
    const call = expect(hold(away.store, 'mine')).rejects.toMatchObject({ code: 'unknown-outcome' })
    await clock.advance(100)
    const position = await tail()
    await hold(other.store, 'lost')
    shared.loseAfter(position)
    const next = hold(other.store, 'new')
    await clock.advance(1000)
    await next
    // So many entries that those which the other one has not read are trimmed.
    for (let at = 0; at < 60; at++) await hold(other.store, `key-${at}`)
    away.log.isCut = false
    away.log.faults.splice(0)
    await clock.advance(5000)
    expect(await away.store.read({ key: 'mine' })).toMatchObject({ count: 1 })
    await call
    await Promise.all([away.store.close(), other.store.close()])
  })

  it('is not resent if its entry arrives late, before the new epoch', async () => {
    const { shared, clock, open, tail } = world()
    const [late, other] = [await open(options), await open(options)]
    await clock.advance(0)
    const position = await tail()
    late.log.faults.push('late', ...Array<'lost'>(100).fill('lost'))
    const call = expect(hold(late.store, 'mine')).rejects.toMatchObject({ code: 'unknown-outcome' })
    await clock.advance(1)
    await hold(other.store, 'lost')
    shared.loseAfter(position)
    const reading = late.store.read({ prefix: '' })
    await clock.advance(1000)
    await late.log.arrive()
    await clock.advance(1000)
    late.log.faults.splice(0)
    await clock.advance(5000)
    await reading
    expect(await late.store.read({ key: 'mine' })).toMatchObject({ count: 1 })
    await call
    expect(await keysOf(other.store)).toEqual(['mine'])
    await Promise.all([late.store.close(), other.store.close()])
  })
})

describe('a log that was restored while no replica was running', () => {
  it('continues above the tokens that its operator names', async () => {
    const { clock, open } = world()
    const { store } = await open()
    await hold(store, 'a')
    const other = await open({ tokensAbove: 5000 })
    await clock.advance(1000)
    expect((await hold(other.store, 'b')).token).toBe(5001)
    expect((await hold(store, 'c')).token).toBe(5002)
    await store.close()
    await other.store.close()
  })

  it('refuses an invalid number', async () => {
    const { open } = world()
    await expect(open({ tokensAbove: -1 })).rejects.toMatchObject({ code: 'invalid-argument' })
  })
})

describe('replicas on a log that loses its tail repeatedly', () => {
  it('never give a token of a key twice, and agree in the end', async () => {
    const steps = fc.array(
      fc.record({ by: fc.nat(2), key: fc.nat(1), lose: fc.nat(12), pass: fc.nat(400) }),
      { minLength: 5, maxLength: 40 },
    )
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        const { shared, clock, open, tail } = world()
        const opened = [await open(), await open({ snapshotBytes: 600 }), await open()]
        let highest = 0
        for (const { by, key, lose, pass } of all) {
          // Most steps lose nothing.
          if (lose > 8) shared.loseAfter(Math.max(0, (await tail()) - (lose - 8)), true)
          const call = hold(opened[by]!.store, `key-${key}`)
          await clock.advance(pass)
          await clock.advance(3000)
          const { token } = await call
          expect(token).toBeGreaterThan(highest)
          highest = token
        }
        const readings = opened.map(({ store }) => store.read({ prefix: '' }))
        await clock.advance(3000)
        const [first, ...others] = await Promise.all(readings)
        for (const other of others) expect(other).toEqual(first)
        for (const { store } of opened) await store.close()
      }),
      randomRuns(60),
    )
  }, 120_000)
})
