import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import type { LeaseStore } from '../../../../src/port/index.ts'
import { FileDurability } from '../../../../src/stores/file/file-durability.ts'
import { fileStore } from '../../../../src/stores/file/index.ts'
import { rest, SMALL, StillClock } from '../harness.ts'
import { diskError, MemoryDisk } from '../memory-disk.ts'

const lease = { holder: 'h', ttl: 600_000 }

async function begin(segmentBytes = 65_536) {
  const disk = new MemoryDisk()
  const clock = new StillClock()
  const options = { disk, clock, limits: SMALL, segmentBytes, snapshotBytes: 1 << 30 }
  const store = await fileStore('memory', options)
  await rest()
  return { disk, clock, store, options }
}

/** Makes every write to the log fail, and counts them. */
function failWrites(disk: MemoryDisk, code = 'EIO'): () => number {
  let count = 0
  disk.fault.writing = (name) => {
    if (!name.startsWith('log')) return
    count++
    throw diskError(code)
  }
  return () => count
}

/** A durability with these parts, which never starts a write. */
function stopped(parts: object): FileDurability {
  const clock = Object.assign(new StillClock(), { defer() {} })
  const durability = new FileDurability(clock)
  durability.start({ shift: 0, ...parts } as never)
  return durability
}

const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'done',
    (error: { code: string; outcome: string }) => `${error.code} ${error.outcome}`,
  )

describe('a write that fails', () => {
  it('is repeated after 50 ms, then after twice as long each time, up to 5 s', async () => {
    const { disk, clock, store } = await begin()
    for (let round = 0; round < 2; round++) {
      const count = failWrites(disk)
      expect(await codeOf(store.grant(lease))).toBe('storage-failed unknown')
      let tries = 1
      for (const wait of [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000]) {
        clock.advance(wait - 1)
        await rest(3)
        expect(count(), `before ${wait}`).toBe(tries)
        clock.advance(1)
        await rest(3)
        expect(count(), `after ${wait}`).toBe(++tries)
      }
      disk.fault = {}
      clock.advance(5000)
      await rest(3)
      expect(await codeOf(store.grant(lease))).toBe('done')
    }
    await store.close()
  })

  it('is the cause of the error that the waiters get', async () => {
    const { disk, clock, store } = await begin()
    failWrites(disk)
    const failed = store.grant(lease)
    await expect(failed).rejects.toMatchObject({ cause: expect.objectContaining({ code: 'EIO' }) })
    disk.fault = {}
    clock.advance(50)
    await store.close()
  })

  it('while the store is being closed is not repeated, and leaves no timer', async () => {
    const { disk, clock, store } = await begin()
    const count = failWrites(disk)
    const granted = codeOf(store.grant(lease))
    await expect(store.close()).rejects.toMatchObject({ code: 'storage-failed' })
    expect(await granted).toBe('storage-failed unknown')
    expect([count(), clock.timers]).toEqual([1, 0])
  })

  it('makes the outcome unknown for the waiters of the next write, too', async () => {
    const { disk, store } = await begin()
    let open = () => {}
    disk.gate = new Promise((resolve) => {
      open = resolve
    })
    const first = codeOf(store.grant(lease))
    await rest(3)
    const second = codeOf(store.grant(lease))
    failWrites(disk)
    open()
    expect(await Promise.all([first, second])).toEqual(Array(2).fill('storage-failed unknown'))
    disk.fault = {}
    await store.close().catch(() => {})
  })

  it.each([
    ['EIO', 'storage-failed unknown'],
    ['ENOSPC', 'storage-full refused'],
  ])('with %s has changes refused until it succeeds', async (code, expected) => {
    const { disk, clock, store } = await begin()
    const granted = (await store.grant(lease)) as { lease: string }
    failWrites(disk, code)
    expect(await codeOf(store.grant(lease))).toBe('storage-failed unknown')
    expect(await codeOf(store.grant(lease))).toBe(expected)
    expect(await codeOf(store.revoke({ target: { lease: granted.lease } }))).toBe(expected)
    disk.fault = {}
    clock.advance(50)
    await rest(3)
    expect(await codeOf(store.grant(lease))).toBe('done')
    await store.close()
  })
})

describe('a log that cannot grow', () => {
  /** Fills the log until nothing is granted any more. Returns how much of the segment was left. */
  async function fill(store: LeaseStore, disk: MemoryDisk): Promise<number> {
    const names = () => [...disk.files.keys()].filter((name) => name.startsWith('log-')).sort()
    disk.fault.growing = (name) => {
      if (name.startsWith('log')) throw diskError('ENOSPC')
    }
    let end = 0
    let segment = ''
    disk.fault.writing = (name, bytes, position) => {
      if (!name.startsWith('log-')) return
      segment = name
      end = position + bytes.length
    }
    for (;;) {
      const done = await codeOf(store.grant({ ...lease, holder: 'x'.repeat(200) }))
      await rest(2)
      if (done === 'done') continue
      expect(done).toBe('storage-full refused')
      expect(segment).toBe(names().at(-1))
      return disk.files.get(segment)!.length - end
    }
  }

  /** What a log with this much room refuses while the disk is full. */
  function obstacles(room: number, segmentBytes: number, isTold = false) {
    const supply = { fault: diskError('ENOSPC'), bytes: segmentBytes, last: 1, want() {} }
    const durability = stopped({ log: { room }, supply })
    if (isTold) durability.changeSink.updated(1, 0, 0, 'k', 1, 'v')
    return (['grow', 'shrink'] as const).filter((kind) => durability.obstacle(kind) !== undefined)
  }

  it('refuses nothing while it has exactly the reserved space', () => {
    expect(obstacles(16_384, 32_768)).toEqual([])
    expect(obstacles(16_383, 32_768)).toEqual(['grow'])
    expect(obstacles(1024, 32_768)).toEqual(['grow'])
    expect(obstacles(1023, 32_768)).toEqual(['grow', 'shrink'])
  })

  it('counts bytes that wait to be written as if they were written', () => {
    expect(obstacles(16_384, 32_768, true)).toEqual(['grow'])
  })

  it('keeps half of a segment for calls that free something', async () => {
    const { disk, store } = await begin(32_768)
    const left = await fill(store, disk)
    expect(left).toBeLessThan(16_384 + 400)
    expect(left).toBeGreaterThan(16_384 - 400)
    await store.close()
  })

  it('keeps at most 4 MiB, however large a segment is', async () => {
    const { disk, store } = await begin(10 << 20)
    disk.fault.growing = (name) => {
      if (name.startsWith('log')) throw diskError('ENOSPC')
    }
    const value = 'v'.repeat(60_000)
    let granted = 0
    for (;;) {
      const claims = [{ key: `k${granted}`, value }]
      if ((await codeOf(store.grant({ ...lease, claims }))) !== 'done') break
      granted++
    }
    // Two segments, without the reserve.
    expect(granted * 60_000).toBeGreaterThan((20 << 20) - (4 << 20) - 200_000)
    expect(granted * 60_000).toBeLessThan((20 << 20) - (4 << 20) + 60_000)
    disk.fault = {}
    await store.close()
  })

  it('accepts calls that free something until a kilobyte is left, then refuses them too', async () => {
    const { disk, store } = await begin(32_768)
    await fill(store, disk)
    const { leases } = await store.read({ leases: true })
    let ended = 0
    for (const { id } of leases) {
      const done = await codeOf(store.revoke({ target: { lease: id }, why: 'w'.repeat(200) }))
      if (done !== 'done') {
        expect(done).toBe('storage-full refused')
        break
      }
      ended++
    }
    expect(ended * 300).toBeGreaterThan(12_000)
    expect(ended).toBeLessThan(leases.length)
    disk.fault = {}
    await rest()
    await store.close().catch(() => {})
  })

  it('continues with the next call as soon as there is space', async () => {
    const { disk, clock, store } = await begin(32_768)
    await fill(store, disk)
    disk.fault = {}
    clock.advance(100)
    expect(await codeOf(store.grant(lease))).toBe('storage-full refused')
    await rest()
    expect(await codeOf(store.grant(lease))).toBe('done')
    await store.close()
  })
})

describe('the time of a store', () => {
  it.each([
    ['not written if something else was in the last 15 s', 15_001, 0],
    ['written if nothing else was for 15 s', 15_000, 1],
  ])('is %s', async (_, after, expected) => {
    const { disk, clock, store } = await begin()
    clock.advance(after)
    await store.grant({ ...lease, maxLife: 900_000 })
    const before = disk.writes
    clock.advance(30_000 - after)
    await rest(3)
    expect(disk.writes - before).toBe(expected)
    await store.close()
  })

  it('is written every 30 s if a lease has a maximum life and nothing else was written', async () => {
    const { disk, clock, store } = await begin()
    const advance = async (seconds: number) => {
      for (let second = 0; second < seconds; second++) {
        clock.advance(1000)
        await rest(1)
      }
    }
    await store.grant(lease)
    await advance(100)
    expect(disk.writes).toBe(1)
    await store.grant({ ...lease, maxLife: 900_000 })
    const before = disk.writes
    await advance(120)
    expect(disk.writes - before).toBeGreaterThanOrEqual(3)
    expect(disk.writes - before).toBeLessThanOrEqual(4)
    await store.close()
  })
})

describe('the bytes that wait to be written', () => {
  it('may be 64 MiB, and more only if that frees something', () => {
    for (const [bytes, code] of [[64 << 20], [(64 << 20) + 1, 'limit-exceeded']] as const) {
      const durability = stopped({ supply: {} })
      Object.defineProperty(durability.changeSink, 'length', { value: bytes })
      expect(durability.obstacle('grow')?.code).toBe(code)
      expect(durability.obstacle('shrink')).toBeUndefined()
    }
  })

  it('ends when its signal is aborted, and leaves no listener', async () => {
    const durability = stopped({})
    durability.changeSink.updated(1, 0, 0, 'k', 1, 'v')
    const stop = new AbortController()
    const waiting = durability.eventually(stop.signal)
    stop.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
    expect(getEventListeners(stop.signal, 'abort')).toEqual([])
  })
})
