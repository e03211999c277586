import { describe, expect, it } from 'vitest'
import { ByteReader, ByteWriter } from '../../../../src/encoding/index.ts'
import { fileStore } from '../../../../src/stores/file/index.ts'
import { KIND, putFrame, readFrame } from '../../../../src/stores/file/log/frame.ts'
import { rest, SMALL, StillClock } from '../harness.ts'
import { MemoryDisk } from '../memory-disk.ts'

function open(disk: MemoryDisk, snapshotBytes = 1 << 30) {
  const options = { disk, clock: new StillClock(), limits: SMALL, segmentBytes: 4096 }
  return fileStore('memory', { ...options, snapshotBytes })
}

/** The disk of a store that crashed with leases of these holders. */
async function crashed(holders: readonly string[], snapshotBytes?: number): Promise<MemoryDisk> {
  const disk = new MemoryDisk()
  const store = await open(disk, snapshotBytes)
  for (const holder of holders) await store.grant({ holder, ttl: 60_000 })
  await rest()
  const copy = disk.copy()
  await store.close()
  return copy
}

const many = Array.from({ length: 100 }, (_, index) => `holder ${index}`)
const namesOf = (disk: MemoryDisk) => [...disk.files.keys()].sort()

async function holdersOf(disk: MemoryDisk): Promise<string[]> {
  const store = await open(disk)
  const { leases } = await store.read({ leases: true })
  await store.close()
  return leases.map(({ holder }) => holder)
}

/** Makes the log look as the version before the manifest wrote it. */
function asBefore(disk: MemoryDisk): void {
  disk.files.delete('manifest')
  for (const name of namesOf(disk)) {
    const bytes = disk.files.get(name)!
    const { header, payload } = readFrame(bytes, 0, 0, KIND.segment)!
    const reader = new ByteReader(payload)
    const writer = new ByteWriter()
    reader.integer()
    writer.integer(1)
    writer.string(reader.string())
    writer.integer(reader.integer())
    writer.integer(reader.integer())
    putFrame(bytes, 0, 0, header, writer.view(), 0)
  }
}

describe('the last writes of a dead process', () => {
  it('are made durable before the manifest depends on them', async () => {
    const disk = await crashed(['h'])
    const done: string[] = []
    disk.fault.syncing = (name) => done.push(`sync ${name}`)
    disk.fault.writing = (name) => done.push(`write ${name}`)
    const store = await open(disk)
    const before = done.slice(0, done.indexOf('write manifest'))
    expect(before).toEqual(expect.arrayContaining(['sync manifest', 'sync log-00000001', 'sync .']))
    await store.close()
    expect(disk.openFiles).toBe(0)
  })
})

describe('a folder with the log of another store', () => {
  it('is refused, although the log has the same length', async () => {
    const [one, other] = [await crashed(['a']), await crashed(['b'])]
    for (const name of namesOf(one).filter((each) => each.startsWith('log'))) {
      one.files.set(name, other.files.get(name)!)
    }
    await expect(open(one)).rejects.toMatchObject({
      code: 'storage-damaged',
      message: expect.stringMatching(/^log-00000001 .* belongs to the store/),
    })
    expect(one.openFiles).toBe(0)
  })
})

describe('a folder without its manifest', () => {
  it('is refused, and nothing is created in it, whichever files remain', async () => {
    const disk = await crashed(many, 0)
    disk.files.delete('manifest')
    const kinds = ['log', 'snapshot']
    for (const left of [kinds, ...kinds.map((kind) => [kind])]) {
      const copy = disk.copy()
      for (const name of namesOf(copy)) {
        if (!left.includes(name.split('-')[0]!)) copy.files.delete(name)
      }
      const names = namesOf(copy)
      expect(names.length).toBeGreaterThan(0)
      await expect(open(copy), left.join()).rejects.toMatchObject({
        code: 'storage-damaged',
        message: expect.stringContaining('manifest is missing'),
      })
      expect(namesOf(copy)).toEqual(names)
      expect(copy.openFiles).toBe(0)
    }
  })

  it('is read if the previous version, which had none, wrote it, and has no snapshot yet', async () => {
    const disk = await crashed(['a', 'b'])
    asBefore(disk)
    expect(await holdersOf(disk)).toEqual(['a', 'b'])
    expect(namesOf(disk)).toContain('manifest')
  })

  it('is refused if the previous version wrote it and it is damaged', async () => {
    const disk = await crashed(many)
    asBefore(disk)
    disk.files.delete('log-00000001')
    await expect(open(disk)).rejects.toMatchObject({
      code: 'storage-damaged',
      message: expect.stringContaining('log-00000001 is missing'),
    })
  })
})
