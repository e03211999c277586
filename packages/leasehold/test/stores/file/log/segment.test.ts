import { describe, expect, it } from 'vitest'
import { isFull } from '../../../../src/stores/file/disk/disk.ts'
import { KIND, putFrame, readFrame } from '../../../../src/stores/file/log/frame.ts'
import {
  checkFormat,
  checkSegmentBytes,
  isTemporary,
  prepareSegment,
  readSegmentInfo,
  SEGMENT_START,
  segmentName,
  segmentNumbers,
  segmentRoom,
  snapshotName,
  snapshotNumbers,
  temporaryName,
} from '../../../../src/stores/file/log/segment.ts'
import { Stamps } from '../../../../src/stores/file/snapshot/snapshot-reader.ts'
import { diskError, MemoryDisk } from '../memory-disk.ts'

describe('the names of files', () => {
  it('have a number of at least eight digits', () => {
    expect([segmentName(1), segmentName(123_456_789)]).toEqual(['log-00000001', 'log-123456789'])
    expect(snapshotName(42)).toBe('snapshot-00000042')
    expect(temporaryName('manifest')).toBe('manifest.tmp')
  })

  it('are read in the order of their numbers, and other files are ignored', () => {
    const names = ['log-00000010', 'log-00000009', 'log-123456789', 'snapshot-00000003']
    const logs = ['log-1', 'my-log-00000001', 'log-00000001.tmp', 'log-0000000x']
    const snapshots = ['snapshot-4', 'my-snapshot-00000004', 'snapshot-00000004.tmp']
    expect(segmentNumbers([...names, ...logs, ...snapshots])).toEqual([9, 10, 123_456_789])
    expect(snapshotNumbers([...names, ...logs, ...snapshots])).toEqual([3])
  })

  it('show unfinished files', () => {
    const unfinished = ['log-00000001.tmp', 'snapshot-00000001.tmp', 'manifest.tmp']
    expect(unfinished.every(isTemporary)).toBe(true)
    const others = ['log-00000001', 'manifest', 'x.tmp', 'my-manifest.tmp', 'manifest.tmp.old']
    expect(others.some(isTemporary)).toBe(false)
  })
})

describe('a segment', () => {
  it.each([4096, 4128, 2 ** 30])('may have %i bytes', (bytes) => {
    expect(() => checkSegmentBytes(bytes)).not.toThrow()
  })

  it.each([0, 4064, 4095, 4097, 4112, 2 ** 30 + 32, 4096.5, Number.NaN])(
    'may not have %d bytes',
    (bytes) => {
      expect(() => checkSegmentBytes(bytes)).toThrow(
        expect.objectContaining({ code: 'invalid-argument' }),
      )
    },
  )

  it('has room for all but its header and its end', () => {
    expect(segmentRoom(4096)).toBe(4096 - SEGMENT_START - 32)
  })

  it.each([
    [1 << 20, 1],
    [2 << 20, 2],
    [(5 << 20) / 2, 3],
  ])(
    'of %i bytes is zeros behind its header, and made durable in %i steps',
    async (bytes, steps) => {
      const disk = new MemoryDisk()
      let syncs = 0
      disk.fault.syncing = (name) => {
        if (name === 'log-00000007.tmp') syncs++
      }
      await prepareSegment(disk, { storeId: 'store', number: 7, bytes })
      const content = disk.files.get('log-00000007')!
      expect(content).toHaveLength(bytes)
      expect(content.subarray(SEGMENT_START).every((byte) => byte === 0)).toBe(true)
      expect([...disk.files.keys()]).toEqual(['log-00000007'])
      expect(syncs).toBe(steps)
    },
  )

  it('that cannot be created leaves nothing behind', async () => {
    const disk = new MemoryDisk()
    disk.fault.syncing = () => {
      throw diskError('EIO')
    }
    const info = { storeId: 'store', number: 1, bytes: 4096 }
    await expect(prepareSegment(disk, info)).rejects.toThrow('EIO')
    expect([disk.files.size, disk.openFiles]).toEqual([0, 0])
  })

  it('has a header, and is refused in the place of another', async () => {
    const disk = new MemoryDisk()
    await prepareSegment(disk, { storeId: 'store', number: 7, bytes: 4096 })
    const file = await disk.open('log-00000007')
    const info = { storeId: 'store', number: 7, bytes: 4096, format: 2 }
    expect(await readSegmentInfo(file, 7, 'store')).toEqual(info)
    expect(await readSegmentInfo(file, 7, undefined)).toEqual(info)
    await expect(readSegmentInfo(file, 8, 'store')).rejects.toThrow('says that it is log-00000007')
    await expect(readSegmentInfo(file, 7, 'other')).rejects.toThrow('belongs to the store store')
  })

  it.each([
    [4097, 4096],
    [4000, 4000],
  ])('of %i bytes instead of 4096 is refused, with byte %i as the place', async (size, place) => {
    const disk = new MemoryDisk()
    await prepareSegment(disk, { storeId: 'store', number: 7, bytes: 4096 })
    const bytes = Buffer.alloc(size)
    disk.files.get('log-00000007')!.copy(bytes)
    disk.files.set('log-00000007', bytes)
    const refused = readSegmentInfo(await disk.open('log-00000007'), 7, 'store')
    await expect(refused).rejects.toThrow(`damaged at byte ${place}: it has ${size} bytes`)
  })

  it('is refused if any bit of its header is wrong, or all of it is zeros', async () => {
    const disk = new MemoryDisk()
    await prepareSegment(disk, { storeId: 'store', number: 7, bytes: 4096 })
    const whole = Buffer.from(disk.files.get('log-00000007')!)
    const bytes = disk.files.get('log-00000007')!
    const file = await disk.open('log-00000007')
    const damaged = { code: 'storage-damaged', message: expect.stringContaining('at byte 0: ') }
    const used = 32 + whole.readUIntLE(4, 3)
    expect(used).toBeGreaterThan(32)
    for (let at = 0; at < used; at++) {
      bytes[at]! ^= 1 << (at % 8)
      await expect(readSegmentInfo(file, 7, 'store'), `byte ${at}`).rejects.toMatchObject(damaged)
      whole.copy(bytes)
    }
    bytes.fill(0, 0, SEGMENT_START)
    await expect(readSegmentInfo(file, 7, 'store')).rejects.toMatchObject(damaged)
  })

  it('has a header of one frame, which no other kind of file can replace', async () => {
    const disk = new MemoryDisk()
    await prepareSegment(disk, { storeId: 'store', number: 7, bytes: 4096 })
    const bytes = disk.files.get('log-00000007')!
    const frame = readFrame(bytes, 0, 0, KIND.segment)!
    const { last, time, sequence, index } = frame.header
    expect({ last, time, sequence, index }).toEqual({ last: true, time: 0, sequence: 0, index: 0 })
    const payload = Buffer.from(frame.payload)
    putFrame(bytes, 0, 0, { ...frame.header, kind: KIND.snapshot }, payload, 0)
    const refused = readSegmentInfo(await disk.open('log-00000007'), 7, 'store')
    await expect(refused).rejects.toMatchObject({ code: 'storage-damaged' })
  })

  it('is read if its format is known', () => {
    expect([checkFormat(1, 'f'), checkFormat(2, 'f')]).toEqual([1, 2])
    for (const format of [0, 3]) {
      expect(() => checkFormat(format, 'f')).toThrow(
        expect.objectContaining({ code: 'unsupported' }),
      )
    }
  })
})

describe('a fault of the disk', () => {
  it('means a full disk if its code says so', () => {
    for (const code of ['ENOSPC', 'EDQUOT', 'EFBIG']) expect(isFull(diskError(code))).toBe(true)
    for (const error of [diskError('EIO'), new Error('x'), undefined, null, 'ENOSPC']) {
      expect(isFull(error)).toBe(false)
    }
  })
})

describe('the stamps of a snapshot', () => {
  it('are those of the slices of the slots', () => {
    const stamps = new Stamps()
    expect([stamps.end, stamps.of(0)]).toEqual([0, 0])
    stamps.add(10, 5)
    stamps.add(20, 7)
    stamps.add(21, 9)
    expect(stamps.end).toBe(21)
    expect([0, 9, 10, 19, 20, 21, 500].map((slot) => stamps.of(slot))).toEqual([
      5, 5, 7, 7, 9, 0, 0,
    ])
  })
})
