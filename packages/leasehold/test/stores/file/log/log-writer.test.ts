import { describe, expect, it } from 'vitest'
import { KIND, readHeader } from '../../../../src/stores/file/log/frame.ts'
import { LogReader } from '../../../../src/stores/file/log/log-reader.ts'
import { LogWriter } from '../../../../src/stores/file/log/log-writer.ts'
import {
  prepareSegment,
  SEGMENT_START,
  seedOf,
  segmentName,
  segmentNumbers,
} from '../../../../src/stores/file/log/segment.ts'
import { SegmentSupply } from '../../../../src/stores/file/log/segment-supply.ts'
import { rest, StillClock } from '../harness.ts'
import { diskError, MemoryDisk } from '../memory-disk.ts'

const STORE = 'store'
const BYTES = 4096
/** The longest payload that fits into an empty segment of this size, with the frame that ends it. */
const LONGEST = BYTES - SEGMENT_START - 64
const full = { code: 'ENOSPC' }

/** A writer at the start of the first segment, with this many segments ready and a full disk. */
async function begin(ready = 1, bytes = BYTES) {
  const disk = new MemoryDisk()
  for (let number = 1; number <= ready; number++) {
    await prepareSegment(disk, { storeId: STORE, number, bytes })
  }
  disk.fault.growing = () => {
    throw diskError('ENOSPC')
  }
  const supply = new SegmentSupply(disk, new StillClock(), STORE, bytes, ready)
  const file = await disk.open(segmentName(1))
  const start = { segment: 1, offset: SEGMENT_START, sequence: 1 }
  const log = new LogWriter(disk, supply, STORE, file, bytes, start)
  await rest(3)
  const write = (payload: Uint8Array) => {
    log.begin(payload, 7)
    return log.finish()
  }
  return { disk, log, write }
}

/** This many bytes, none of them zero. */
function payloadOf(length: number): Buffer {
  return Buffer.from(Array.from({ length }, (_, at) => 1 + (at % 251)))
}

/** Strings are compared faster than bytes. */
const textOf = (payload: Buffer) => payload.toString('latin1')

/** The groups that can be read from the log. */
async function groupsOf(disk: MemoryDisk): Promise<string[]> {
  const groups: string[] = []
  const segments = segmentNumbers(await disk.list())
  const reader = new LogReader(disk, segments, STORE, (payload) => {
    groups.push(textOf(payload))
  })
  await reader.read({ segment: 1, offset: SEGMENT_START, sequence: 1 })
  return groups
}

/** All later writes, as the segment's number and the range of bytes. */
function watchWrites(disk: MemoryDisk): [number, number, number][] {
  const writes: [number, number, number][] = []
  disk.fault.writing = (name, bytes, position) => {
    writes.push([Number(name.slice(4)), position, position + bytes.length])
  }
  return writes
}

describe('the room of the log', () => {
  it('is the rest of this segment and all of the segments that are ready', async () => {
    const room = BYTES - SEGMENT_START - 32
    expect((await begin(1)).log.room).toBe(room)
    expect((await begin(3)).log.room).toBe(3 * room)
    const { log, write } = await begin(2)
    await write(payloadOf(1000))
    expect(log.room).toBe(2 * room - 1056)
  })

  it('is reduced by a group that waits to be written, or that failed', async () => {
    const { disk, log } = await begin(2)
    const before = log.room
    log.begin(payloadOf(1000), 7)
    expect(log.room).toBe(before - 1056)
    disk.fault.writing = () => {
      throw diskError('EIO')
    }
    await expect(log.finish()).rejects.toMatchObject({ code: 'EIO' })
    expect(log.room).toBeLessThanOrEqual(before - 1056)
    expect(log.room).toBeGreaterThanOrEqual(before - 1056 - 32)
    disk.fault.writing = () => {}
    await log.finish()
    expect(log.room).toBe(before - 1056)
  })
})

describe('a group', () => {
  it.each([
    ['fills a segment to its end', [LONGEST]],
    ['fills to its end the little that is left of a segment', [LONGEST - 512, 480]],
  ])('that %s needs no other segment', async (_, lengths) => {
    const { disk, log, write } = await begin(1)
    for (const length of lengths) await write(payloadOf(length))
    expect(log.position).toMatchObject({ segment: 1, offset: BYTES - 32 })
    expect(await groupsOf(disk)).toEqual(lengths.map((length) => textOf(payloadOf(length))))
  })

  it('that does not fit writes nothing until another segment exists', async () => {
    const { disk, log } = await begin(1)
    const writes = watchWrites(disk)
    log.begin(payloadOf(LONGEST + 1), 7)
    await expect(log.finish()).rejects.toMatchObject(full)
    expect(writes).toEqual([])
    disk.fault = {}
    await log.finish()
    expect(await groupsOf(disk)).toEqual([textOf(payloadOf(LONGEST + 1))])
  })

  it('that continues in the last segment needs none after it', async () => {
    const { disk, write } = await begin(2)
    await write(payloadOf(5000))
    expect(await groupsOf(disk)).toEqual([textOf(payloadOf(5000))])
  })

  it.each([
    [1024, [SEGMENT_START + 2880, BYTES]],
    [992, [SEGMENT_START + 2912, SEGMENT_START + 2912 + 32]],
  ])('is begun in a segment that has room for %i bytes, or not', async (left, written) => {
    const { disk, write } = await begin(2)
    await write(payloadOf(LONGEST - left - 32))
    const writes = watchWrites(disk)
    await write(payloadOf(2000))
    expect(writes[0]).toEqual([1, ...written])
    expect(await groupsOf(disk)).toHaveLength(2)
  })

  it('has frames with their kinds, including the one that ends a segment', async () => {
    const { disk, write } = await begin(2)
    await write(payloadOf(LONGEST + 100))
    const frames = [
      [1, SEGMENT_START, KIND.records, false, 1, 0],
      [1, BYTES - 32, KIND.roll, false, 2, 1],
      [2, SEGMENT_START, KIND.records, true, 3, 2],
    ] as const
    for (const [segment, at, kind, last, sequence, index] of frames) {
      const header = readHeader(disk.files.get(segmentName(segment))!, at, seedOf(STORE))
      expect(header).toMatchObject({ kind, last, sequence, index, time: 7 })
    }
  })

  it('of several frames is one write', async () => {
    const { disk, write } = await begin(1, 1 << 20)
    await write(payloadOf(200_000))
    expect(disk.writes).toBe(1)
    expect(await groupsOf(disk)).toEqual([textOf(payloadOf(200_000))])
  })

  it('of several megabytes is written in parts of about one', async () => {
    const { disk, write } = await begin(1, 4 << 20)
    const writes = watchWrites(disk)
    const payload = Buffer.alloc(3 << 20, 'x')
    await write(payload)
    const lengths = writes.map(([, from, to]) => to - from)
    expect(Math.max(...lengths)).toBeLessThan((1 << 20) + 65_600)
    expect(lengths).toHaveLength(3)
    expect(await groupsOf(disk)).toEqual([textOf(payload)])
  })

  it('leaves no sector of zeros in any of its frames', async () => {
    const { disk, write } = await begin(1, 1 << 20)
    const payload = payloadOf(140_000)
    // The second frame's payload lies 192 bytes further on in the file than in the group.
    payload.fill(0, 70_144 - 192, 70_144 - 192 + 512)
    await write(payload)
    const bytes = disk.files.get(segmentName(1))!
    for (let at = 0; at < 140_000; at += 512) {
      expect(
        bytes.subarray(at, at + 512).some((byte) => byte !== 0),
        `sector ${at}`,
      ).toBe(true)
    }
    expect(await groupsOf(disk)).toEqual([textOf(payload)])
  })

  it('that cannot continue in the next segment yet continues there later, and writes nothing twice', async () => {
    const { disk, log } = await begin(2)
    const writes = watchWrites(disk)
    disk.fault.opening = (name) => {
      if (name === segmentName(2)) throw diskError('EIO')
    }
    log.begin(payloadOf(5000), 7)
    for (let time = 0; time < 2; time++) {
      await expect(log.finish()).rejects.toMatchObject({ code: 'EIO' })
    }
    delete disk.fault.opening
    await log.finish()
    expect(writes.map(([segment]) => segment)).toEqual([1, 2])
    expect(await groupsOf(disk)).toEqual([textOf(payloadOf(5000))])
  })
})
