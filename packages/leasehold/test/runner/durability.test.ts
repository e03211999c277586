import { describe, expect, it } from 'vitest'
import type { Notice } from '../../src/port/index.ts'
import { TestClock } from '../../src/testing/index.ts'
import { claimedIn } from './claimed-in.ts'
import { runnerOn, SlowDisk } from './slow-disk.ts'

const turn = () => new Promise((resolve) => setImmediate(resolve))
const lease = { holder: 'a', ttl: 1000 }

/** A runner with one durable lease. */
async function begin(clock = new TestClock()) {
  const disk = new SlowDisk()
  const runner = runnerOn(disk, clock)
  const granting = runner.grant({ ...lease, claims: [{ key: 'k' }] })
  disk.sync()
  const granted = await granting
  if (granted.outcome !== 'granted') throw new Error('unexpected')
  return { disk, runner, clock, id: granted.lease }
}

/** Whether the promise is settled by now. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false
  const settle = () => {
    settled = true
  }
  promise.then(settle, settle)
  await turn()
  return settled
}

describe('an answer', () => {
  it('that a lease has ended waits until its end is durable', async () => {
    const { disk, runner, id } = await begin()
    void runner.revoke({ target: { lease: id }, why: 'done' })
    const renewed = runner.renew([id])
    expect(await isSettled(renewed)).toBe(false)
    disk.sync()
    expect((await renewed).lost).toHaveLength(1)
    await runner.close()
  })

  it('that all leases were renewed does not wait', async () => {
    const { runner, id } = await begin()
    void runner.grant(lease)
    expect(await isSettled(runner.renew([id]))).toBe(true)
    await runner.close()
  })

  it('that refuses waits until the changes before it are durable', async () => {
    const { disk, runner, id } = await begin()
    void runner.revoke({ target: { lease: id }, why: 'done' })
    const refused = runner.claim({ lease: id, claims: [{ key: 'l' }] })
    expect(await isSettled(refused)).toBe(false)
    disk.sync()
    await expect(refused).rejects.toMatchObject({ code: 'lease-ended' })
    await runner.close()
  })
})

describe('an expiry', () => {
  it('happens at the earliest deadline, whichever lease was granted first', async () => {
    const { disk, runner, clock } = await begin()
    const short = runner.grant({ holder: 'b', ttl: 100, claims: [{ key: 'short' }] })
    disk.sync()
    await short
    await clock.advance(100)
    disk.sync()
    expect((await runner.read({ leases: true })).leases.map(({ holder }) => holder)).toEqual(['a'])
    await runner.close()
  })

  it('waits while it cannot be written, and happens as soon as it can', async () => {
    const { disk, runner, clock } = await begin()
    const refusal = { code: 'storage-full', message: 'full' } as const
    disk.full = { grow: refusal, shrink: refusal }
    await clock.advance(5000)
    expect((await runner.read({ leases: true })).leases).toHaveLength(1)
    disk.full = {}
    await clock.advance(250)
    disk.sync()
    expect((await runner.read({ leases: true })).leases).toEqual([])
    await runner.close()
  })
})

describe('a watch', () => {
  it('that waits for its first notice is notified that the store was closed', async () => {
    const { runner } = await begin()
    void runner.grant(lease)
    const heard: Notice[] = []
    // The watch of an ended lease gets one notice, which is not durable yet.
    for (const lease of ['1.1', '2.1']) {
      runner.watch({ lease }, (notice) => heard.push(notice))
      await turn()
    }
    expect(heard).toEqual([])
    await runner.close()
    expect(heard.map(({ type }) => type)).toEqual(['interrupted', 'interrupted'])
  })

  it('is notified of what happened while an earlier change was not durable', async () => {
    const { disk, runner } = await begin()
    const heard: string[] = []
    runner.watch({ prefix: '' }, (notice) => {
      heard.push(...claimedIn(notice))
    })
    await turn()
    void runner.grant({ ...lease, claims: [{ key: 'one' }] })
    await turn()
    void runner.grant({ ...lease, claims: [{ key: 'two' }] })
    disk.sync()
    await turn()
    disk.sync()
    await turn()
    expect(heard).toEqual(['one', 'two'])
    await runner.close()
  })

  it('gets no event before its first notice, and none from before it began', async () => {
    const { disk, runner } = await begin()
    runner.watch({ prefix: '' }, () => {})
    await turn()
    void runner.grant({ ...lease, claims: [{ key: 'before' }] })
    const first: Notice[] = []
    const second: Notice[] = []
    const resumed: Notice[] = []
    runner.watch({ prefix: '' }, (notice) => first.push(notice))
    void runner.grant({ ...lease, claims: [{ key: 'between' }] })
    runner.watch({ prefix: '' }, (notice) => second.push(notice))
    runner.watch({ prefix: '', from: 0 }, (notice) => resumed.push(notice))
    void runner.grant({ ...lease, claims: [{ key: 'after' }] })
    for (let sync = 0; sync < 3; sync++) {
      await turn()
      disk.sync()
    }
    await turn()
    const keysIn = (notices: Notice[]) =>
      notices.flatMap((notice) => (notice.type === 'events' ? claimedIn(notice) : [notice.type]))
    expect(keysIn(first)).toEqual(['watching', 'between', 'after'])
    expect(keysIn(second)).toEqual(['watching', 'after'])
    expect(keysIn(resumed)).toEqual(['watching', 'k', 'before', 'between', 'after'])
    await runner.close()
  })
})
