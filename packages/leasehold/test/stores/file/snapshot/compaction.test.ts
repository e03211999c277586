import { describe, expect, it } from 'vitest'
import { fileStore } from '../../../../src/stores/file/index.ts'
import { rest, SMALL, StillClock } from '../harness.ts'
import { diskError, MemoryDisk } from '../memory-disk.ts'

/** A store with one claim, whose value is changed to make the log longer. */
async function begin(snapshotBytes: number, valueBytes: number, disk = new MemoryDisk()) {
  const clock = new StillClock()
  const options = { disk, clock, limits: SMALL, segmentBytes: 1 << 20, snapshotBytes }
  const store = await fileStore('memory', options)
  let logged = 0
  disk.fault.writing = (name, bytes) => {
    if (name.startsWith('log-')) logged += bytes.length
  }
  const value = 'v'.repeat(valueBytes)
  const granted = await store.grant({ holder: 'h', ttl: 60_000, claims: [{ key: 'k', value }] })
  const { lease, token } = granted as { lease: string; token: number }
  const change = async () => {
    await store.update({ lease, key: 'k', token, value })
    await rest(30)
  }
  const snapshots = () =>
    [...disk.files.keys()].filter((name) => name.startsWith('snapshot')).sort()
  /** Changes the value until there is another snapshot. Returns the length of the log just before. */
  const untilSnapshot = async () => {
    const last = snapshots().at(-1)
    for (;;) {
      const before = logged
      await change()
      if (snapshots().at(-1) !== last) return { before, after: logged }
    }
  }
  return { disk, clock, store, options, change, snapshots, untilSnapshot, logged: () => logged }
}

describe('a snapshot', () => {
  it('is taken as soon as the log has grown by more than it may', async () => {
    const { store, snapshots, untilSnapshot, disk } = await begin(10_000, 500)
    const first = await untilSnapshot()
    expect(first.before).toBeLessThanOrEqual(10_000)
    expect(first.after).toBeGreaterThan(10_000)
    const second = await untilSnapshot()
    expect(second.before - first.after).toBeLessThanOrEqual(10_000)
    expect(second.after - first.after).toBeGreaterThan(10_000)
    expect(snapshots()).toEqual(['snapshot-00000002'])
    expect(disk.openFiles).toBe(2)
    await store.close()
  })

  it('is taken only when the log is twice as long as the last one, if that is more', async () => {
    const { store, disk, snapshots, untilSnapshot, logged } = await begin(1000, 5000)
    await rest(30)
    // The first claim alone was longer than the log may grow.
    expect(snapshots()).toEqual(['snapshot-00000001'])
    const start = logged()
    const bytes = disk.files.get('snapshot-00000001')!.length
    expect(bytes).toBeGreaterThan(5000)
    const { before, after } = await untilSnapshot()
    expect(before - start).toBeLessThanOrEqual(2 * bytes)
    expect(after - start).toBeGreaterThan(2 * bytes)
    await store.close()
  })

  it('counts the log from before the store was opened', async () => {
    const { disk, options, store, change, logged } = await begin(20_000, 500)
    while (logged() < 15_000) await change()
    await store.close()
    disk.fault = {}
    const again = await begin(20_000, 500, disk.copy())
    const { before, after } = await again.untilSnapshot()
    expect(before).toBeLessThanOrEqual(20_000 - 15_000)
    expect(after).toBeLessThan(20_000 - 15_000 + 2000)
    await again.store.close()
    // The log is longer than it may be now.
    const shorter = await fileStore('memory', { ...options, snapshotBytes: 10_000 })
    await rest(30)
    expect([...disk.files.keys()]).toContain('snapshot-00000001')
    await shorter.close()
  })

  it('that failed is tried again after five seconds, and not before', async () => {
    const { disk, clock, store, change, snapshots } = await begin(2000, 500)
    let tries = 0
    disk.fault.growing = (name) => {
      if (!name.startsWith('snapshot')) return
      tries++
      throw diskError('EIO')
    }
    while (tries === 0) await change()
    clock.advance(4999)
    for (let count = 0; count < 10; count++) await change()
    expect(tries).toBe(1)
    clock.advance(1)
    await change()
    expect(tries).toBe(2)
    disk.fault.growing = () => {}
    clock.advance(5000)
    await change()
    expect(snapshots()).toEqual(['snapshot-00000001'])
    await store.close()
  })

  it('gets its name only when the log contains everything that it contains', async () => {
    const { disk, clock, store, change, snapshots } = await begin(2000, 500)
    const fail = () => {
      throw diskError('EIO')
    }
    let late: Promise<unknown> | undefined
    disk.fault.growing = (name) => {
      if (!name.startsWith('snapshot') || late) return
      disk.fault.writing = (at) => at.startsWith('log-') && fail()
      late = store.grant({ holder: 'late', ttl: 60_000 }).catch((error) => error)
    }
    while (!late) await change()
    expect(await late).toMatchObject({ code: 'storage-failed' })
    await rest(30)
    // The second write fails while the snapshot waits for it.
    clock.advance(50)
    await rest(30)
    expect(snapshots()).toEqual(['snapshot-00000001.tmp'])
    disk.fault = {}
    clock.advance(100)
    await rest(30)
    expect(snapshots()).toEqual(['snapshot-00000001'])
    await store.close()
  })

  it('is not taken on a full disk if it would free nothing', async () => {
    const disk = new MemoryDisk()
    const begun: string[] = []
    disk.fault.growing = (name) => {
      if (name.startsWith('snapshot')) begun.push(name)
      if (name.startsWith('log-00000002')) throw diskError('ENOSPC')
    }
    const options = { disk, clock: new StillClock(), limits: SMALL, segmentBytes: 65_536 }
    const store = await fileStore('memory', options)
    await rest(30)
    expect([...disk.files.keys()].sort()).toEqual(['log-00000001', 'manifest'])
    expect(begun).toEqual([])
    await store.close()
  })

  it('that is being written when the store is closed is given up', async () => {
    const { disk, store, options, snapshots } = await begin(10_000, 500)
    const grants = Array.from({ length: 300 }, (_, at) =>
      store.grant({ holder: 'h', ttl: 60_000, claims: [{ key: `k${at}` }] }),
    )
    await Promise.all(grants)
    await store.close()
    expect([snapshots(), disk.openFiles]).toEqual([[], 0])
    const again = await fileStore('memory', { ...options, snapshotBytes: 1 << 30 })
    expect((await again.read({ leases: true })).leases).toHaveLength(301)
    await again.close()
  })

  it('is not taken while the log has grown by exactly the limit', async () => {
    const measured = await begin(1 << 30, 500)
    await measured.change()
    const bytes = measured.logged()
    for (const [snapshotBytes, expected] of [
      [bytes, []],
      [bytes - 1, ['snapshot-00000001']],
    ] as const) {
      const { store, change, snapshots, logged } = await begin(snapshotBytes, 500)
      await change()
      expect(logged()).toBe(bytes)
      expect(snapshots()).toEqual(expected)
      await store.close()
    }
    await measured.store.close()
  })

  /** Delays the renaming of a finished snapshot. */
  function holdBack(disk: MemoryDisk, meanwhile: () => Promise<void>) {
    const { rename } = disk
    disk.rename = async (from, to) => {
      if (to.startsWith('snapshot')) await meanwhile()
      await rename.call(disk, from, to)
    }
  }

  it('is the only one in progress', async () => {
    const { disk, store, change, snapshots, logged } = await begin(2000, 500)
    let free = () => {}
    const gate = new Promise<void>((resolve) => {
      free = resolve
    })
    holdBack(disk, () => gate)
    let begun = 0
    const { create } = disk
    disk.create = (name) => {
      if (name.startsWith('snapshot')) begun++
      return create.call(disk, name)
    }
    while (logged() < 20_000) await change()
    expect([begun, snapshots()]).toEqual([1, ['snapshot-00000001.tmp']])
    free()
    await rest(30)
    expect(snapshots()).toEqual(['snapshot-00000001'])
    await store.close()
  })

  /** A store whose log has reached its second segment, and the names of its new files. */
  async function inSecondSegment(
    disk: MemoryDisk,
    clock: StillClock,
    failing: (name: string) => Promise<void>,
  ) {
    const made: string[] = []
    const { create } = disk
    disk.create = async (name) => {
      made.push(name)
      await failing(name)
      return create.call(disk, name)
    }
    const options = { disk, clock, limits: SMALL, segmentBytes: 4096, snapshotBytes: 1 << 30 }
    const store = await fileStore('memory', options)
    const claims = [{ key: 'k', value: 'v'.repeat(1500) }]
    while (!made.includes('log-00000003.tmp')) {
      await store.grant({ holder: 'h', ttl: 60_000, claims })
      await rest(2)
    }
    return { store, made }
  }

  it('that freed space on a full disk prepares the next segment at once', async () => {
    const [disk, clock] = [new MemoryDisk(), new StillClock()]
    let isFull = true
    holdBack(disk, async () => {
      isFull = false
      clock.advance(100)
    })
    const { store } = await inSecondSegment(disk, clock, async (name) => {
      if (name === 'log-00000003.tmp' && isFull) throw diskError('ENOSPC')
    })
    await rest(30)
    expect([...disk.files.keys()].sort()).toEqual([
      'log-00000002',
      'log-00000003',
      'manifest',
      'snapshot-00000001',
    ])
    await store.close()
  })

  it('is not begun for a disk that is found full when the store is closed', async () => {
    let free = () => {}
    const gate = new Promise<void>((resolve) => {
      free = resolve
    })
    const [disk, clock] = [new MemoryDisk(), new StillClock()]
    const { store, made } = await inSecondSegment(disk, clock, async (name) => {
      if (name !== 'log-00000003.tmp') return
      await gate
      throw diskError('ENOSPC')
    })
    const closed = store.close()
    free()
    await closed
    await rest(30)
    expect(made.filter((name) => name.startsWith('snapshot'))).toEqual([])
  })
})
