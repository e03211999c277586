import { describe, expect, it } from 'vitest'
import { MemoryLog } from '../../src/log/index.ts'
import { replicaStore } from '../../src/replica/index.ts'
import { TestClock } from '../../src/testing/index.ts'

describe('the period of a break', () => {
  /** An old member, and one that joined 5 s after the last entry and so cannot know the time. */
  async function openLate() {
    const shared = new MemoryLog()
    const clock = new TestClock()
    const old = await replicaStore(shared.open(), { clock, coalesce: 0 })
    const { lease } = (await old.grant({ holder: 'h', ttl: 60_000 })) as { lease: string }
    await clock.advance(5000)
    const late = await replicaStore(shared.open(), { clock, coalesce: 0 })
    const close = () => Promise.all([old.close(), late.close()])
    return { clock, old, late, lease, close }
  }

  it('is not cut short by a replica that knows the time better than the one that wrote it', async () => {
    const { clock, old, late, lease, close } = await openLate()
    await late.revoke({ target: { lease }, after: 3000 })
    expect(await old.renew([lease])).toMatchObject({ lost: [], capped: [{ remaining: 3000 }] })
    await clock.advance(2000)
    expect((await old.renew([lease])).capped).toMatchObject([{ remaining: 1000 }])
    await clock.advance(1100)
    expect((await old.renew([lease])).lost).toMatchObject([{ end: { reason: 'broken' } }])
    await close()
  })

  it('does not start again with each replica that renews the lease', async () => {
    const { clock, old, late, lease, close } = await openLate()
    await late.revoke({ target: { lease }, after: 3000 })
    for (let passed = 0; passed < 3000; passed += 500) {
      const remaining = 3000 - passed
      for (const store of [old, late]) {
        expect((await store.renew([lease])).capped).toMatchObject([{ remaining }])
      }
      await clock.advance(500)
    }
    await clock.advance(100)
    expect((await old.renew([lease])).lost).toHaveLength(1)
    await close()
  })

  it('ends late, never early, after breaks by replicas that do not agree on the time', async () => {
    const shared = new MemoryLog()
    const clock = new TestClock()
    const old = await replicaStore(shared.open(), { clock, coalesce: 0 })
    const { lease } = (await old.grant({ holder: 'h', ttl: 60_000 })) as { lease: string }
    await old.revoke({ target: { lease }, after: 10_000 })
    await clock.advance(5000)
    const late = await replicaStore(shared.open(), { clock, coalesce: 0 })
    // 5 s are left. For the late replica it is the time of the first break, and 7 s are less than 10 s.
    await late.revoke({ target: { lease }, after: 7000 })
    expect((await old.renew([lease])).capped).toMatchObject([{ remaining: 7000 }])
    // The time of the log has jumped by 5 s, so 6 s seem to be more than is left: the break is ignored.
    await old.revoke({ target: { lease }, after: 6000 })
    await clock.advance(6900)
    expect((await old.renew([lease])).lost).toEqual([])
    await clock.advance(200)
    expect((await old.renew([lease])).lost).toHaveLength(1)
    await Promise.all([old.close(), late.close()])
  })

  it('is known to a replica that joins, as of the last renewal', async () => {
    const shared = new MemoryLog()
    const clock = new TestClock()
    const old = await replicaStore(shared.open(), { clock, coalesce: 0 })
    const { lease } = (await old.grant({ holder: 'h', ttl: 60_000 })) as { lease: string }
    await old.revoke({ target: { lease }, after: 50_000 })
    await clock.advance(40_000)
    await old.renew([lease])
    await clock.advance(1000)
    const late = await replicaStore(shared.open(), { clock, coalesce: 0 })
    // 9 s are left. It does not know how long ago the renewal was: it counts late, never early.
    expect((await late.renew([lease])).capped).toMatchObject([{ remaining: 10_000 }])
    await clock.advance(10_100)
    expect((await late.renew([lease])).lost).toHaveLength(1)
    await Promise.all([old.close(), late.close()])
  })
})

describe('a lease that needs no renewal', () => {
  const grant = { holder: 'h', ttl: Infinity, maxLife: 5000 }

  it('ends with its maximum life, though every replica has joined since', async () => {
    const shared = new MemoryLog()
    const clock = new TestClock()
    const options = { clock, coalesce: 0, snapshotBytes: 400 }
    const old = await replicaStore(shared.open(), options)
    const { lease } = (await old.grant(grant)) as { lease: string }
    const position = await shared.open().tail()
    for (let at = 0; at < 20; at++) {
      await old.grant({ holder: 'h', ttl: 60_000 })
      await clock.settle()
    }
    expect((await shared.open().loadSnapshot())!.position).toBeGreaterThan(position)
    const late = await replicaStore(shared.open(), options)
    await old.close()
    await clock.advance(4900)
    expect((await late.read({ lease })).lease).toBeDefined()
    await clock.advance(200)
    expect((await late.read({ lease })).lease).toBeUndefined()
    await late.close()
  })

  it('ends with it after a lost tail, too', async () => {
    const shared = new MemoryLog()
    const clock = new TestClock()
    const store = await replicaStore(shared.open(), { clock, coalesce: 0 })
    const { lease } = (await store.grant(grant)) as { lease: string }
    const position = await shared.open().tail()
    await store.grant({ holder: 'h', ttl: 60_000 })
    shared.loseAfter(position)
    const next = store.grant({ holder: 'h', ttl: 60_000 })
    await clock.advance(1000)
    await next
    expect((await store.read({ lease })).lease).toBeDefined()
    await clock.advance(5100)
    expect((await store.read({ lease })).lease).toBeUndefined()
    await store.close()
  })
})

describe('the time of a log', () => {
  it('stands still while no replica runs, whatever the wall clock shows', async () => {
    const shared = new MemoryLog()
    const before = new TestClock(1_000_000)
    const store = await replicaStore(shared.open(), { clock: before, coalesce: 0 })
    const request = { holder: 'h', ttl: 60_000, maxLife: 100_000 }
    const { lease } = (await store.grant(request)) as { lease: string }
    await before.advance(40_000)
    await store.renew([lease])
    await before.advance(10_000)
    await store.close()
    // An hour later, with a clock that was also set forward by a year.
    const after = new TestClock(1_000_000 + 3_600_000 + 365 * 86_400_000)
    const late = await replicaStore(shared.open(), { clock: after, coalesce: 0 })
    // At the last renewal 40 s of its 100 s were over: it counts from there.
    const renewed = await late.renew([lease])
    expect(renewed).toMatchObject({ lost: [], capped: [{ remaining: 60_000 }] })
    await after.advance(30_000)
    expect((await late.renew([lease])).capped).toMatchObject([{ remaining: 30_000 }])
    await after.advance(30_100)
    expect((await late.renew([lease])).lost).toHaveLength(1)
    await late.close()
  })

  it('does not go back if the clock of the next replica was set back', async () => {
    const shared = new MemoryLog()
    const store = await replicaStore(shared.open(), { clock: new TestClock(9e9), coalesce: 0 })
    await store.grant({ holder: 'h', ttl: 60_000 })
    await store.close()
    const clock = new TestClock(1000)
    const late = await replicaStore(shared.open(), { clock, coalesce: 0 })
    const { leases } = await late.read({ leases: true })
    await late.renew([leases[0]!.id])
    await clock.advance(59_000)
    expect((await late.read({ leases: true })).leases).toHaveLength(1)
    await clock.advance(1100)
    expect((await late.read({ leases: true })).leases).toEqual([])
    await late.close()
  })
})
