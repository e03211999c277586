import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { copyFolder, type FileStoreOptions, fileStore } from '../../../src/stores/file/index.ts'
import { rest, SMALL, StillClock } from './harness.ts'
import { diskError, MemoryDisk } from './memory-disk.ts'

const lease = { holder: 'h', ttl: 600_000 }

function open(options: FileStoreOptions, disk = new MemoryDisk(), clock = new StillClock()) {
  return fileStore('memory', { limits: SMALL, segmentBytes: 4096, disk, clock, ...options })
}

/** The number of writes to the log during a minute without any call. */
async function writesWhileIdle(disk: MemoryDisk, clock: StillClock): Promise<number> {
  const before = disk.writes
  for (let step = 0; step < 4; step++) {
    clock.advance(15_000)
    await rest(3)
  }
  return disk.writes - before
}

describe('the options of a file store', () => {
  const HIGHEST = Number.MAX_SAFE_INTEGER - 2 ** 40

  it.each<FileStoreOptions>([
    { tokensAbove: -1 },
    { tokensAbove: 1.5 },
    { tokensAbove: HIGHEST + 1 },
    { tokensAbove: '5' as never },
    { snapshotBytes: -1 },
    { snapshotBytes: Number.NaN },
    { snapshotBytes: '5' as never },
    { segmentBytes: 4064 },
    { segmentBytes: 4097 },
    { segmentBytes: 2 ** 30 + 32 },
  ])('cannot be %j', async (options) => {
    const disk = new MemoryDisk()
    await expect(open(options, disk)).rejects.toMatchObject({ code: 'invalid-argument' })
    expect(disk.files.size).toBe(0)
  })

  it.each<FileStoreOptions>([{ tokensAbove: 0 }, { tokensAbove: HIGHEST }, { snapshotBytes: 0 }])(
    'can be %j',
    async (options) => {
      const store = await open(options)
      const { revision } = await store.grant(lease)
      expect(revision).toBe((options.tokensAbove ?? 0) + 1)
      await store.close()
    },
  )
})

describe('a file store', () => {
  it('states its guarantees, with its limits', async () => {
    const store = await open({ limits: { ...SMALL, ttlMin: 20, ttlMax: 1000 } })
    const { notes, ...promised } = store.guarantees
    expect(promised).toEqual({
      engine: 'file',
      inProcess: true,
      durability: 'disk',
      tokensSurvive: 'restart',
      ttl: { min: 20, max: 1000, step: 0 },
      expiryLateness: 10,
      childLeases: true,
      requestsRemembered: SMALL.requests,
      eventsKept: SMALL.events,
    })
    expect(notes.length).toBeGreaterThan(0)
    await store.close()
  })

  it.each([
    ['ENOSPC', 'storage-full'],
    ['EIO', 'storage-failed'],
  ])('that meets %s is refused with %s, and gives its folder back', async (code, expected) => {
    const disk = new MemoryDisk()
    const cause = diskError(code)
    disk.fault.growing = () => {
      throw cause
    }
    await expect(open({}, disk)).rejects.toMatchObject({ code: expected, cause })
    expect(disk.openFiles).toBe(0)
    disk.fault = {}
    await (await open({}, disk)).close()
  })

  it('names a thrown value that is not an error in its refusal', async () => {
    const disk = new MemoryDisk()
    disk.fault.growing = () => {
      throw 'out of order'
    }
    await expect(open({}, disk)).rejects.toThrow('out of order')
  })

  it('is copied while it is in use, with its current revision', async () => {
    const root = mkdtempSync(join(tmpdir(), 'leasehold-copy-'))
    const store = await fileStore(join(root, 'data'), { limits: SMALL, segmentBytes: 4096 })
    const { revision } = await store.grant(lease)
    expect(await copyFolder(join(root, 'data'), join(root, 'copy'))).toBe(revision)
    await store.close()
    rmSync(root, { recursive: true })
  })

  it('is refused while another owns the folder, and leaves that owner alone', async () => {
    const disk = new MemoryDisk()
    const owner = await open({}, disk)
    await expect(open({}, disk)).rejects.toMatchObject({ code: 'storage-locked' })
    await expect(open({}, disk)).rejects.toMatchObject({ code: 'storage-locked' })
    await owner.close()
  })
})

describe('the time that an idle store writes', () => {
  it('is not written if nothing was ever written', async () => {
    const disk = new MemoryDisk()
    const clock = new StillClock()
    const store = await open({}, disk, clock)
    expect(await writesWhileIdle(disk, clock)).toBe(0)
    await store.close()
    expect(disk.writes).toBe(0)
  })

  it('is written again after the store was opened again, from its log', async () => {
    const [disk, clock] = [new MemoryDisk(), new StillClock()]
    const first = await open({}, disk, clock)
    await first.grant({ ...lease, maxLife: 900_000 })
    await first.close()
    const again = await open({}, disk, clock)
    expect(await writesWhileIdle(disk, clock)).toBe(2)
    await again.close()
  })

  it('is written again after the store was opened again, from its snapshot alone', async () => {
    const [disk, clock] = [new MemoryDisk(), new StillClock()]
    const first = await open({ snapshotBytes: 0 }, disk, clock)
    await first.grant({ ...lease, maxLife: 900_000 })
    await rest(30)
    const crashed = disk.copy()
    await first.close()
    expect([...crashed.files.keys()]).toContain('snapshot-00000001')
    const again = await open({}, crashed, clock)
    expect(await writesWhileIdle(crashed, clock)).toBe(2)
    await again.close()
  })
})
