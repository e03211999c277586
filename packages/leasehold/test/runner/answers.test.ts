import { describe, expect, it, vi } from 'vitest'
import type { Refusal } from '../../src/port/index.ts'
import { TestClock } from '../../src/testing/index.ts'
import { runnerOn, SlowDisk } from './slow-disk.ts'

const turn = () => new Promise((resolve) => setImmediate(resolve))
const FULL: Refusal = { code: 'storage-full', message: 'no space' }
const refused = (code: string) => expect.objectContaining({ code })

/** Whether a promise is settled, and how. */
async function stateOf(promise: Promise<unknown>): Promise<string> {
  const open = turn().then(() => 'open')
  const settled = promise.then(
    () => 'fulfilled',
    (error) => `rejected ${error.code}`,
  )
  return Promise.race([settled, open])
}

async function leaseOn(runner: ReturnType<typeof runnerOn>, keys: string[] = []) {
  const claims = keys.map((key) => ({ key }))
  const request = { holder: 'a', ttl: 1000, ...(keys.length > 0 && { claims }) }
  const granted = await runner.grant(request)
  if (granted.outcome !== 'granted') throw new Error('it is not granted')
  return granted
}

describe('an answer', () => {
  it('is given when the changes before it are durable', async () => {
    const disk = new SlowDisk()
    const runner = runnerOn(disk)
    const granted = runner.grant({ holder: 'a', ttl: 1000 })
    expect(await stateOf(granted)).toBe('open')
    disk.sync()
    expect(await stateOf(granted)).toBe('fulfilled')
  })

  it('that is a refusal waits for them, too', async () => {
    const disk = new SlowDisk()
    const runner = runnerOn(disk)
    void runner.grant({ holder: 'a', ttl: 1000 })
    const refusal = runner.claim({ lease: '9.9', claims: [{ key: 'k' }] })
    const read = runner.read({ key: 'k' })
    expect(await stateOf(refusal)).toBe('open')
    expect(await stateOf(read)).toBe('open')
    disk.sync()
    expect(await stateOf(refusal)).toBe('rejected lease-not-found')
    expect(await stateOf(read)).toBe('fulfilled')
  })

  it('to a renewal is given at once, unless a lease has ended', async () => {
    const disk = new SlowDisk()
    const runner = runnerOn(disk)
    const granting = leaseOn(runner)
    disk.sync()
    const { lease } = await granting
    void runner.grant({ holder: 'b', ttl: 1000 })
    expect(await stateOf(runner.renew([lease]))).toBe('fulfilled')
    expect(await stateOf(runner.renew([lease, '9.9']))).toBe('open')
    expect(await stateOf(runner.renew('no array' as never))).toBe('open')
  })

  it('to a renewal is given at once if the lease only reaches the end of its life', async () => {
    const disk = new SlowDisk()
    const runner = runnerOn(disk)
    const granting = runner.grant({ holder: 'a', ttl: 1000, maxLife: 1000 })
    disk.sync()
    const { lease } = (await granting) as { lease: string }
    void runner.grant({ holder: 'b', ttl: 1000 })
    const renewing = runner.renew([lease])
    expect(await stateOf(renewing)).toBe('fulfilled')
    expect((await renewing).capped).toEqual([{ lease, remaining: 1000, end: undefined }])
  })

  it('is always a refusal after the store was closed', async () => {
    const disk = new SlowDisk()
    const runner = runnerOn(disk)
    const closing = runner.close()
    expect(runner.close()).toBe(closing)
    await closing
    const target = { lease: '1.1' }
    const calls = [
      runner.grant({ holder: 'a', ttl: 1000 }),
      runner.renew([]),
      runner.revoke({ target }),
      runner.claim({ lease: '1.1', claims: [{ key: 'k' }] }),
      runner.release({ lease: '1.1', keys: ['k'], token: 1 }),
      runner.update({ lease: '1.1', key: 'k', token: 1, value: 'v' }),
      runner.read({ key: 'k' }),
    ]
    for (const call of calls) await expect(call).rejects.toThrow(refused('closed'))
    expect(() => runner.watch({ prefix: '' }, () => {})).toThrow(refused('closed'))
    expect(disk.closed).toBe(1)
  })
})

describe('a full disk', () => {
  it('refuses changes that add something, and allows changes that free something', async () => {
    const disk = new SlowDisk()
    const runner = runnerOn(disk)
    const granting = leaseOn(runner, ['k'])
    disk.sync()
    const { lease, revision: token } = await granting
    disk.full = { grow: FULL }
    const claims = [{ key: 'l' }]
    await expect(runner.grant({ holder: 'a', ttl: 1000 })).rejects.toThrow(refused('storage-full'))
    await expect(runner.claim({ lease, claims })).rejects.toThrow(refused('storage-full'))
    const update = runner.update({ lease, key: 'k', token, value: 'v' })
    await expect(update).rejects.toThrow(refused('storage-full'))
    const released = runner.release({ lease, keys: ['k'], token })
    disk.sync()
    expect((await released).revision).toBeGreaterThan(1)
    const revoked = runner.revoke({ target: { lease } })
    disk.sync()
    await revoked
  })

  it('may refuse changes that free something, too', async () => {
    const disk = new SlowDisk()
    const runner = runnerOn(disk)
    disk.full = { shrink: FULL }
    const release = runner.release({ lease: '1.1', keys: ['k'], token: 1 })
    await expect(release).rejects.toThrow(refused('storage-full'))
    const revoke = runner.revoke({ target: { lease: '1.1' } })
    await expect(revoke).rejects.toThrow(refused('storage-full'))
  })

  it('keeps leases alive that cannot be ended, and ends them soon after that is possible', async () => {
    const disk = new SlowDisk()
    const clock = new TestClock()
    const runner = runnerOn(disk, clock)
    void leaseOn(runner)
    disk.sync()
    disk.full = { shrink: FULL }
    await clock.advance(5000)
    expect(runner.kernel.leases).toBe(1)
    disk.full = {}
    await clock.advance(249)
    await clock.advance(1)
    expect(runner.kernel.leases).toBe(0)
  })
})

describe('expiry', () => {
  it('continues until nothing is overdue, and lets other work run in between', async () => {
    const clock = new TestClock()
    const runner = runnerOn(undefined, clock)
    for (let count = 0; count < 2500; count++) await runner.grant({ holder: 'a', ttl: 1000 })
    const left: number[] = []
    const expire = vi.spyOn(runner.kernel, 'expire')
    const timer = vi.spyOn(clock, 'timer')
    const defer = vi.spyOn(clock, 'defer').mockImplementation((run) => {
      left.push(runner.kernel.leases)
      TestClock.prototype.defer.call(clock, run)
    })
    await clock.advance(1000)
    expect(runner.kernel.leases).toBe(0)
    expect(expire.mock.calls.length).toBeGreaterThanOrEqual(3)
    expect(left).toEqual(expect.arrayContaining([2500, 1500, 500]))
    expect(timer).not.toHaveBeenCalled()
    defer.mockRestore()
  })

  it('sets one timer, and another only for an earlier deadline', async () => {
    const clock = new TestClock()
    const runner = runnerOn(undefined, clock)
    const timer = vi.spyOn(clock, 'timer')
    await runner.grant({ holder: 'a', ttl: 1000 })
    expect(timer).toHaveBeenCalledTimes(1)
    await runner.grant({ holder: 'b', ttl: 1000 })
    await runner.grant({ holder: 'c', ttl: 5000 })
    await runner.read({ key: 'k' })
    expect(timer).toHaveBeenCalledTimes(1)
    await runner.grant({ holder: 'd', ttl: 500 })
    expect(timer).toHaveBeenCalledTimes(2)
    expect(timer.mock.results[0]!.value).toBeDefined()
    await clock.advance(500)
    expect(runner.kernel.leases).toBe(3)
    await clock.advance(500)
    expect(runner.kernel.leases).toBe(1)
  })

  it('sets no timer while a sweep is due, and none when the store is closed', async () => {
    const clock = new TestClock()
    const runner = runnerOn(undefined, clock)
    await runner.grant({ holder: 'a', ttl: 100 })
    const deferred: (() => void)[] = []
    const defer = vi.spyOn(clock, 'defer').mockImplementation((run) => void deferred.push(run))
    await clock.advance(100)
    expect(deferred).toHaveLength(1)
    const timer = vi.spyOn(clock, 'timer')
    const expire = vi.spyOn(runner.kernel, 'expire')
    await runner.grant({ holder: 'b', ttl: 50 })
    expect(timer).not.toHaveBeenCalled()
    defer.mockRestore()
    deferred[0]!()
    expect(expire).toHaveBeenCalledTimes(1)
    expect(timer).toHaveBeenCalledTimes(1)
    await clock.advance(50)
    expect(runner.kernel.leases).toBe(0)
  })

  it('does not happen after the store was closed', async () => {
    const clock = new TestClock()
    const runner = runnerOn(undefined, clock)
    await runner.grant({ holder: 'a', ttl: 100 })
    const deferred: (() => void)[] = []
    vi.spyOn(clock, 'defer').mockImplementation((run) => void deferred.push(run))
    await clock.advance(100)
    const expire = vi.spyOn(runner.kernel, 'expire')
    await runner.close()
    const timer = vi.spyOn(clock, 'timer')
    deferred[0]!()
    expect(expire).not.toHaveBeenCalled()
    expect(timer).not.toHaveBeenCalled()
  })
})
