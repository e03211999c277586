import { describe, expect, it } from 'vitest'
import type { LeaseStore, Notice } from '../../../../src/port/index.ts'
import { RESERVED } from '../../../../src/stores/file/checkpoints.ts'
import { fileStore } from '../../../../src/stores/file/index.ts'
import { rest, SMALL, StillClock } from '../harness.ts'
import { diskError, MemoryDisk } from '../memory-disk.ts'

function open(disk: MemoryDisk, clock = new StillClock(), segmentBytes = 65_536) {
  return fileStore('memory', { disk, clock, limits: SMALL, segmentBytes })
}

const hold = (store: LeaseStore, key = 'k') =>
  store.grant({ holder: 'h', ttl: 60_000, claims: [{ key }] })

function firstNotice(store: LeaseStore, from: number): Promise<Notice> {
  return new Promise((resolve) => {
    const watch = store.watch({ prefix: '', from }, (notice) => {
      watch.close()
      resolve(notice)
    })
  })
}

describe('revisions', () => {
  it('continue without a gap after a store was closed', async () => {
    const disk = new MemoryDisk()
    const store = await open(disk)
    const { revision } = await hold(store)
    await store.close()
    const again = await open(disk)
    expect((await hold(again)).revision).toBe(revision + 1)
    await again.close()
  })

  it('continue above all reserved revisions after each of several crashes', async () => {
    let disk = new MemoryDisk()
    let last = 0
    for (let life = 0; life < 4; life++) {
      // Of two lives one leaves on the disk only that the store was open.
      await open(disk)
      disk = disk.copy()
      const { revision } = await hold(await open(disk.copy()))
      expect(revision).toBeGreaterThan(last)
      last = revision
    }
    expect(last).toBeLessThan(8 * (RESERVED + 2))
  })

  it('cost no second write for each commit', async () => {
    const disk = new MemoryDisk()
    const store = await open(disk)
    let manifests = 0
    disk.fault.writing = (name) => {
      if (name === 'manifest') manifests++
    }
    for (let round = 0; round < 200; round++) await hold(store, `k${round}`)
    expect(disk.writes).toBe(200)
    expect(manifests).toBe(0)
    await store.close()
    expect(manifests).toBe(1)
  })
})

describe('a watch that resumes after a crash', () => {
  it('misses nothing after a known revision, and reads again after a lost one', async () => {
    const disk = new MemoryDisk()
    const store = await open(disk)
    const { revision: kept } = await hold(store, 'kept')
    const files = disk.copy()
    const { revision: lost } = await hold(store, 'lost')
    const again = await open(files)
    const { revision: next } = await hold(again, 'next')
    for (const from of [kept - 1, kept, next - 1, next]) {
      expect(await firstNotice(again, from), `from ${from}`).toMatchObject({ type: 'watching' })
    }
    for (const from of [lost, RESERVED, next + 1]) {
      expect(await firstNotice(again, from), `from ${from}`).toMatchObject({ type: 'compacted' })
    }
    await again.close()
    // The gap is known at later openings too.
    const later = await open(files)
    expect(await firstNotice(later, kept)).toMatchObject({ type: 'watching' })
    expect(await firstNotice(later, lost)).toMatchObject({ type: 'compacted' })
    expect(await firstNotice(later, next - 1)).toMatchObject({ type: 'watching' })
    await later.close()
  })

  it('reads again from a revision that was lost in any of several crashes', async () => {
    let disk = new MemoryDisk()
    const lost: number[] = []
    for (let life = 0; life < 3; life++) {
      const store = await open(disk)
      await hold(store, `kept-${life}`)
      const files = disk.copy()
      lost.push((await hold(store, 'lost')).revision)
      disk = files
    }
    const store = await open(disk)
    await hold(store, 'last')
    for (const from of lost) {
      expect(await firstNotice(store, from), `from ${from}`).toMatchObject({ type: 'compacted' })
    }
    expect(await firstNotice(store, 1)).toMatchObject({ type: 'watching' })
    await store.close()
  })

  it('reports events on both sides of a gap', async () => {
    const disk = new MemoryDisk()
    const store = await open(disk)
    const { revision } = await hold(store, 'a')
    await hold(store, 'b')
    const again = await open(disk.copy())
    await hold(again, 'c')
    const keys: string[] = []
    again.watch({ prefix: '', from: revision }, (notice) => {
      if (notice.type === 'events') {
        keys.push(...notice.events.map(({ type, key }) => `${type} ${key}`))
      }
    })
    await rest()
    expect(keys).toEqual(['claimed b', 'held b', 'claimed c', 'held c'])
    await again.close()
  })
})

/** Holds back the first checkpoint of a store that is yet to be opened on this disk. */
function holdBack(disk: MemoryDisk): { readonly begun: Promise<void>; free(): void } {
  const { open: openFile } = disk
  let free = () => {}
  let begin = () => {}
  const gate = new Promise<void>((resolve) => {
    free = resolve
  })
  const begun = new Promise<void>((resolve) => {
    begin = resolve
  })
  let writes = 0
  disk.open = async (name) => {
    const file = await openFile.call(disk, name)
    if (name !== 'manifest') return file
    const writeDurably = async (bytes: Uint8Array, position: number) => {
      // The first write says that the store is open.
      if (++writes === 2) {
        begin()
        await gate
      }
      await file.writeDurably(bytes, position)
    }
    return { ...file, writeDurably }
  }
  return { begun, free }
}

describe('the manifest', () => {
  it('is correct after a write to it failed and was repeated', async () => {
    for (const landed of [true, false]) {
      const disk = new MemoryDisk()
      const clock = new StillClock()
      const store = await open(disk, clock)
      let failures = 2
      disk.fault.writing = (name, bytes, position, file) => {
        if (name !== 'manifest' || failures-- <= 0) return
        if (landed) file.set(bytes, position)
        throw diskError('EIO')
      }
      await hold(store, 'a')
      for (let second = 0; second < 5; second++) {
        clock.advance(1000)
        await rest(3)
      }
      expect(failures).toBeLessThan(0)
      await (await open(disk.copy())).close()
      const files = disk.copy()
      files.files.get('log-00000001')!.fill(0, 128)
      await expect(open(files)).rejects.toThrow('the log ends with frame 0')
      await store.close()
      await (await open(disk)).close()
    }
  })

  it('finally says that the store is closed, even during a write to it', async () => {
    const disk = new MemoryDisk()
    const clock = new StillClock()
    const checkpoint = holdBack(disk)
    const store = await open(disk, clock)
    const { revision } = await hold(store)
    clock.advance(1000)
    await checkpoint.begun
    const closed = store.close()
    await rest()
    checkpoint.free()
    await closed
    const again = await open(disk)
    expect((await hold(again)).revision).toBe(revision + 1)
    await again.close()
  })

  it('covers changes that were committed during a slow write to it', async () => {
    const disk = new MemoryDisk()
    const clock = new StillClock()
    const checkpoint = holdBack(disk)
    const store = await open(disk, clock)
    await hold(store, 'first')
    clock.advance(1000)
    await checkpoint.begun
    const before = disk.copy().files.get('log-00000001')!
    await hold(store, 'second')
    clock.advance(2000)
    checkpoint.free()
    await rest()
    clock.advance(1000)
    await rest()
    const files = disk.copy()
    files.files.set('log-00000001', before)
    await expect(open(files)).rejects.toThrow(
      'the log ends with frame 1, but it was written up to frame 2',
    )
    await store.close()
  })

  it('does not say that the log is complete if the last write failed', async () => {
    const disk = new MemoryDisk()
    const store = await open(disk)
    const { revision } = await hold(store)
    disk.fault.writing = (name) => {
      if (name !== 'manifest') throw diskError('EIO')
    }
    hold(store, 'lost').catch(() => {})
    await expect(store.close()).rejects.toMatchObject({ code: 'storage-failed' })
    disk.fault = {}
    const again = await open(disk)
    expect((await hold(again)).revision).toBeGreaterThan(revision + RESERVED)
    await again.close()
  })

  it('releases the folder if the store cannot be closed cleanly', async () => {
    const disk = new MemoryDisk()
    const store = await open(disk)
    await hold(store)
    disk.fault.writing = () => {
      throw diskError('EIO')
    }
    await expect(store.close()).rejects.toThrow('EIO')
    disk.fault = {}
    const again = await open(disk)
    expect((await again.read({ key: 'k' })).holders).toBe(1)
    await again.close()
  })

  it('is written before a new store has a log, so that a crash between leaves a new store', async () => {
    const disk = new MemoryDisk()
    const moments: MemoryDisk[] = []
    const { rename } = disk
    disk.rename = async (from, to) => {
      await rename.call(disk, from, to)
      moments.push(disk.copy())
    }
    await (await open(disk)).close()
    expect([...moments[0]!.files.keys()]).toEqual(['manifest'])
    for (const moment of moments) {
      const store = await open(moment)
      expect((await hold(store)).revision).toBeGreaterThan(0)
      await store.close()
    }
  })
})
