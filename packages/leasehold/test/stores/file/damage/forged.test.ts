import { describe, expect, it } from 'vitest'
import { RecordEncoder } from '../../../../src/encoding/index.ts'
import { type ChangeSink, type GrantedLease, Kernel } from '../../../../src/kernel/index.ts'
import { systemRandom } from '../../../../src/port/index.ts'
import { fileStore } from '../../../../src/stores/file/index.ts'
import { type FrameFields, KIND, putFrame } from '../../../../src/stores/file/log/frame.ts'
import { LogWriter } from '../../../../src/stores/file/log/log-writer.ts'
import { SEGMENT_START, seedOf, segmentName } from '../../../../src/stores/file/log/segment.ts'
import { SegmentSupply } from '../../../../src/stores/file/log/segment-supply.ts'
import { recover } from '../../../../src/stores/file/recovery.ts'
import {
  type Described,
  writeSnapshot,
} from '../../../../src/stores/file/snapshot/snapshot-writer.ts'
import { SMALL, StillClock } from '../harness.ts'
import { MemoryDisk } from '../memory-disk.ts'

const SEGMENT_BYTES = 4096
const HUGE = 2 ** 31 - 2
const NO_PARENT = -1

function open(disk: MemoryDisk, clock = new StillClock()) {
  return fileStore('memory', { disk, clock, limits: SMALL, segmentBytes: SEGMENT_BYTES })
}

/** The disk of a store that crashed with three leases, in the slots 0, 1 and 2. */
async function crashed(): Promise<MemoryDisk> {
  const disk = new MemoryDisk()
  const store = await open(disk)
  for (const holder of ['a', 'b', 'c']) await store.grant({ holder, ttl: 60_000 })
  const copy = disk.copy()
  await store.close()
  return copy
}

function lease(born: number, parent = NO_PARENT): GrantedLease {
  const at = 1_800_000_000_000
  return {
    born,
    at,
    holder: 'x',
    ttl: 60_000,
    grace: 0,
    endOfLife: Infinity,
    parent,
    labels: undefined,
  }
}

/** Appends records with right checksums to the log. */
async function append(disk: MemoryDisk, forge: (changeSink: ChangeSink) => void): Promise<void> {
  const clock = new StillClock()
  const { recovered } = await recover(disk, systemRandom, SEGMENT_BYTES, () => new Kernel())
  const { storeId, end, opened } = recovered
  await opened?.file.close()
  const { segment } = end.position
  const supply = new SegmentSupply(disk, clock, storeId, SEGMENT_BYTES, segment)
  const file = await disk.open(segmentName(segment))
  const log = new LogWriter(disk, supply, storeId, file, SEGMENT_BYTES, end.position)
  const encoder = new RecordEncoder()
  forge(encoder)
  log.begin(encoder.take(), clock.now())
  await log.finish()
  await log.close()
  await supply.close()
}

/**
 * Writes a snapshot of a kernel with arbitrary contents, at the end of the log or this many frames
 * later.
 */
async function snapshot(
  disk: MemoryDisk,
  kernel: Partial<Described>,
  { sliceSlots, ahead = 0 }: { sliceSlots?: number; ahead?: number } = {},
): Promise<void> {
  const { recovered } = await recover(disk, systemRandom, SEGMENT_BYTES, () => new Kernel())
  await recovered.opened?.file.close()
  const { position } = recovered.end
  const described = { revision: 9, slots: 1, describe() {}, describeRetained: () => [], ...kernel }
  await writeSnapshot(disk, new StillClock(), described, {
    storeId: recovered.storeId,
    number: 1,
    start: position,
    shift: 0,
    logged: async () => position.sequence + ahead,
    signal: new AbortController().signal,
    ...(sliceSlots && { sliceSlots }),
  })
}

async function refusal(disk: MemoryDisk): Promise<string> {
  const store = await open(disk).catch((error: { code: string; message: string }) => {
    expect(error).toMatchObject({ code: 'storage-damaged', cause: expect.any(Error) })
    return error
  })
  if ('close' in store) {
    await store.close()
    throw new Error('the store was opened')
  }
  return store.message
}

describe('a record with a right checksum that no store can have written', () => {
  it('is refused if it grants a slot past the first that was never used', async () => {
    const disk = await crashed()
    await append(disk, (changeSink) => changeSink.granted(4, HUGE, lease(4)))
    expect(await refusal(disk)).toContain(
      `a lease was granted slot ${HUGE}, but only slots up to 3 could be given out`,
    )
  })

  it('is read if it grants the first slot that was never used', async () => {
    const disk = await crashed()
    await append(disk, (changeSink) => changeSink.granted(4, 3, lease(4, 2)))
    const store = await open(disk)
    expect((await store.read({ leases: true })).leases).toHaveLength(4)
    await store.close()
  })

  it('is refused if its parent was never granted', async () => {
    const disk = await crashed()
    await append(disk, (changeSink) => changeSink.granted(4, 3, lease(4, HUGE)))
    expect(await refusal(disk)).toContain(
      `the lease in slot 3 is under slot ${HUGE}, which has no lease`,
    )
  })

  it('is refused if its parent has ended', async () => {
    const disk = await crashed()
    await append(disk, (changeSink) => {
      changeSink.ended(4, 1, 0, { reason: 'expired' })
      changeSink.granted(5, 3, lease(5, 1))
    })
    expect(await refusal(disk)).toContain('the lease in slot 3 is under slot 1, which has no lease')
  })

  it('is refused if a lease is under itself', async () => {
    const disk = await crashed()
    await append(disk, (changeSink) => changeSink.granted(4, 3, lease(4, 3)))
    expect(await refusal(disk)).toContain(
      'the lease of revision 4 is under the lease of revision 4, which is not older',
    )
  })

  it('is refused if two leases are under each other', async () => {
    const disk = await crashed()
    await append(disk, (changeSink) => {
      changeSink.granted(4, 3, lease(4, 4))
      changeSink.granted(5, 4, lease(5, 3))
    })
    expect(await refusal(disk)).toContain(
      'the lease of revision 4 is under the lease of revision 5, which is not older',
    )
  })
})

describe('a frame with right checksums that no store can have written', () => {
  /** Puts a frame at the end of the log, or at the given position. */
  async function put(disk: MemoryDisk, change: Partial<FrameFields>, name?: string, at?: number) {
    const { recovered } = await recover(disk, systemRandom, SEGMENT_BYTES, () => new Kernel())
    await recovered.opened?.file.close()
    const { segment, offset, sequence } = recovered.end.position
    const fields = { kind: KIND.records, last: false, time: 0, sequence, index: 0, ...change }
    const bytes = disk.files.get(name ?? segmentName(segment))!
    const position = at ?? offset
    putFrame(bytes, position, position, fields, Buffer.from('x'), seedOf(recovered.storeId))
  }

  const damage = (disk: MemoryDisk) =>
    open(disk).then(
      async (store) => {
        await store.close()
        return 'opened'
      },
      (error: { code: string; message: string }) => `${error.code} ${error.message}`,
    )

  it('is dropped if it starts a group that was never finished', async () => {
    const disk = await crashed()
    await put(disk, {})
    expect(await damage(disk)).toBe('opened')
  })

  it.each<[string, Partial<FrameFields>, string]>([
    ['has the number of another', { sequence: 40 }, 'frame 40 is where frame'],
    ['has a place in the middle of a group', { index: 1 }, 'is where frame'],
    ['is of a kind that no log has', { kind: KIND.slice }, 'a frame has the unknown kind 5'],
  ])('is refused if it %s', async (_, change, message) => {
    const disk = await crashed()
    await put(disk, change)
    expect(await damage(disk)).toMatch(new RegExp(`^storage-damaged .*${message}`))
  })

  it('is refused in a segment that is not in use yet', async () => {
    const disk = await crashed()
    await put(disk, {}, 'log-00000002', SEGMENT_START)
    expect(await damage(disk)).toMatch(/^storage-damaged log-00000002 .*it is in use, but the log/)
  })
})

describe('a snapshot with right checksums that no store can have written', () => {
  it('is refused if a slice has a lease outside of its slots', async () => {
    const disk = await crashed()
    const describe = (_from: number, _to: number, changeSink: ChangeSink) =>
      changeSink.granted(4, HUGE, lease(4))
    await snapshot(disk, { slots: 3, describe })
    expect(await refusal(disk)).toContain(`slot ${HUGE} is in the slice of the slots 0 to 2`)
  })

  it('is refused if a slice has more slots than a slice can have', async () => {
    const disk = await crashed()
    await snapshot(disk, { slots: 2000 }, { sliceSlots: 2000 })
    expect(await refusal(disk)).toContain(
      'a slice has the slots 0 to 1999, but must begin with slot 0 and have at most 1024',
    )
  })

  it('is refused if it was taken when the log was longer', async () => {
    const disk = await crashed()
    const now = disk.copy()
    await snapshot(now, {})
    await (await open(now)).close()
    await snapshot(disk, {}, { ahead: 1 })
    await expect(open(disk)).rejects.toMatchObject({
      code: 'storage-damaged',
      message: expect.stringContaining('snapshot-00000001 was taken after frame'),
    })
    expect(disk.openFiles).toBe(0)
  })

  it('is refused if a lease is in none of its slices', async () => {
    const disk = await crashed()
    function* describeRetained(changeSink: ChangeSink) {
      changeSink.granted(4, 1, lease(4))
      yield
    }
    await snapshot(disk, { slots: 3, describeRetained })
    expect(await refusal(disk)).toContain('slot 1 is in none of the slices')
  })

  it('is read if it covers slots that have no lease', async () => {
    const disk = await crashed()
    const describe = (from: number, _to: number, changeSink: ChangeSink) => {
      if (from === 1024) changeSink.granted(4, 1030, lease(4))
    }
    await snapshot(disk, { slots: 1040, describe })
    await append(disk, (changeSink) => changeSink.granted(10, 1040, lease(10, 1030)))
    const store = await open(disk)
    expect((await store.read({ leases: true })).leases.map(({ id }) => id)).toEqual([
      '1030.4',
      '1040.10',
    ])
    await store.close()
  })
})
