import { describe, expect, it } from 'vitest'
import { ByteWriter, RecordEncoder } from '../../../../src/encoding/index.ts'
import { type ChangeSink, Kernel } from '../../../../src/kernel/index.ts'
import { KIND, type Kind, putFrame } from '../../../../src/stores/file/log/frame.ts'
import { putFormat, seedOf, snapshotName } from '../../../../src/stores/file/log/segment.ts'
import {
  readSnapshot,
  readSnapshotInfo,
} from '../../../../src/stores/file/snapshot/snapshot-reader.ts'
import {
  type Described,
  type SnapshotOptions,
  writeSnapshot,
} from '../../../../src/stores/file/snapshot/snapshot-writer.ts'
import { StillClock } from '../harness.ts'
import { MemoryDisk } from '../memory-disk.ts'

const STORE = 'store'
const NAME = snapshotName(1)
const START = { segment: 3, offset: 640, sequence: 70 }

interface Frame {
  readonly kind: Kind
  readonly payload: Uint8Array
  readonly sequence?: number
}

function bytesOf(write: (bytes: ByteWriter) => void): Buffer {
  const bytes = new ByteWriter()
  write(bytes)
  return Buffer.from(bytes.view())
}

const HEAD: Frame = {
  kind: KIND.snapshot,
  payload: bytesOf((bytes) => {
    putFormat(bytes)
    bytes.string(STORE)
    for (const number of [1, START.segment, START.offset, START.sequence]) bytes.integer(number)
  }),
}

function sliceOf(from: number, to: number, slots: readonly number[] = []): Frame {
  const encoder = new RecordEncoder()
  for (const slot of slots) grant(encoder, slot)
  const head = bytesOf((bytes) => {
    for (const number of [9, from, to]) bytes.integer(number)
  })
  return { kind: KIND.slice, payload: Buffer.concat([head, encoder.take()]) }
}

function endOf(frames: number): Frame {
  const payload = bytesOf((bytes) => {
    for (const number of [9, frames, 71]) bytes.float(number)
  })
  return { kind: KIND.end, payload }
}

function grant(changeSink: ChangeSink, slot: number, holder = 'h'): void {
  const [born, at] = [1 + slot, 1_800_000_000_000]
  const lease = { born, at, holder, ttl: 1000, grace: 0, endOfLife: Infinity, parent: -1 }
  changeSink.granted(born, slot, { ...lease, labels: undefined })
}

/** A disk with a snapshot of these frames, and of the end that belongs to them. */
function diskOf(frames: readonly Frame[]): MemoryDisk {
  return diskOfAll([...frames, endOf(frames.length)])
}

function diskOfAll(frames: readonly Frame[]): MemoryDisk {
  const bytes = Buffer.alloc(65_536)
  let length = 0
  for (const [index, { kind, payload, sequence = index }] of frames.entries()) {
    const seed = index === 0 ? 0 : seedOf(STORE)
    const fields = { kind, last: true, time: 7, sequence, index: 0 }
    length += putFrame(bytes, length, length, fields, payload, seed)
  }
  return new MemoryDisk(new Map([[NAME, bytes.subarray(0, length)]]))
}

async function read(disk: MemoryDisk) {
  const info = await readSnapshotInfo(disk, 1)
  const kernel = new Kernel()
  const stamps = await readSnapshot(disk, info, kernel.replay())
  return { info, stamps }
}

async function refusal(disk: MemoryDisk): Promise<string> {
  const error = await read(disk).then(
    () => ({ code: 'read', message: '' }),
    (thrown: { code: string; message: string }) => thrown,
  )
  expect(error).toMatchObject({ code: 'storage-damaged' })
  expect(disk.openFiles).toBe(0)
  return error.message
}

const EMPTY: Described = { revision: 9, slots: 0, describe() {}, describeRetained: () => [] }

async function write(
  kernel: Partial<Described>,
  more: Partial<SnapshotOptions> = {},
  prepare: (disk: MemoryDisk) => void = () => {},
  clock = new StillClock(),
) {
  const disk = new MemoryDisk()
  prepare(disk)
  // Not spread, because the values of a kernel may change.
  const described: Described = Object.setPrototypeOf(kernel, EMPTY)
  const bytes = await writeSnapshot(disk, clock, described, {
    storeId: STORE,
    number: 1,
    start: START,
    shift: 0,
    logged: async () => 71,
    signal: new AbortController().signal,
    ...more,
  })
  return { disk, bytes }
}

describe('a snapshot', () => {
  it('has a header, and says how far its slices reach', async () => {
    const { info, stamps } = await read(diskOf([HEAD, sliceOf(0, 2, [0, 1]), sliceOf(2, 3)]))
    expect(info).toMatchObject({
      format: 2,
      number: 1,
      storeId: STORE,
      start: START,
      stamp: 9,
      frames: 3,
      logged: 71,
      time: 7,
    })
    expect(stamps.end).toBe(3)
  })

  it.each<[string, readonly Frame[], string]>([
    ['a slice leaves out slots', [sliceOf(0, 2), sliceOf(3, 4)], 'must begin with slot 2'],
    ['a slice has slots of the one before', [sliceOf(0, 2), sliceOf(1, 3)], 'begin with slot 2'],
    ['a slice has no slot', [sliceOf(0, 0)], 'the slots 0 to -1'],
    ['a slice ends before it begins', [sliceOf(0, 2), sliceOf(2, 1)], 'the slots 2 to 0'],
    ['a lease is behind its slice', [sliceOf(0, 2, [2])], 'slot 2 is in the slice'],
    ['a lease is before its slice', [sliceOf(0, 2), sliceOf(2, 4, [1])], 'slot 1 is in the slice'],
    ['it has a frame of the log', [{ ...sliceOf(0, 2), kind: KIND.records }], 'unknown kind 2'],
    ['a frame has another number', [{ ...sliceOf(0, 2), sequence: 2 }], 'where frame 1 must be'],
    ['it ends twice', [endOf(3)], 'it has 1 frames instead of 2'],
  ])('is refused if %s', async (_, frames, message) => {
    expect(await refusal(diskOf([HEAD, ...frames]))).toContain(message)
  })

  it.each([1, 3])(
    'is refused if its end counts %i frames before it instead of 2',
    async (count) => {
      const disk = diskOfAll([HEAD, sliceOf(0, 2), endOf(count)])
      expect(await refusal(disk)).toContain(`it has 2 frames instead of ${count}`)
    },
  )

  it('is refused if any bit of a frame is wrong', async () => {
    const disk = diskOf([HEAD, sliceOf(0, 2, [0, 1])])
    const size = disk.files.get(NAME)!.length
    for (let at = 0; at < size; at++) {
      const copy = disk.copy()
      copy.files.get(NAME)![at]! ^= 1 << (at % 8)
      const message = await refusal(copy)
      if (at >= size - 64) expect(message).toContain(`at byte ${size - 64}: its end is missing`)
      else expect(message).toContain('a frame does not match its checksum')
    }
  })

  it.each([
    [50, 50],
    [64, 64],
    [95, 95],
    [96, 32],
    [127, 63],
  ])('that is cut off at byte %i is refused, with byte %i as the place', async (length, place) => {
    const disk = diskOf([HEAD, sliceOf(0, 2)])
    disk.files.set(NAME, disk.files.get(NAME)!.subarray(0, length))
    expect(await refusal(disk)).toContain(`damaged at byte ${place}: its end is missing`)
  })

  it('of many megabytes is written and read a few at a time, and nothing of it twice', async () => {
    const slots = 200
    let written = 0
    const syncs: number[] = []
    const { disk, bytes } = await write(
      {
        slots,
        describe(from, to, changeSink) {
          for (let slot = from; slot < to; slot++) grant(changeSink, slot, 'h'.repeat(50_000))
        },
      },
      {},
      (made) => {
        made.fault.growing = (_, by) => {
          expect(by).toBeLessThan(2 << 20)
          written += by
        }
        made.fault.syncing = (name) => {
          if (name !== '.') syncs.push(written)
        }
      },
    )
    expect(bytes).toBeGreaterThan(9 << 20)
    expect(syncs).toHaveLength(3)
    expect(syncs[0]).toBeGreaterThan(4 << 20)
    expect(syncs[1]! - syncs[0]!).toBeGreaterThan(4 << 20)
    expect(syncs[2]).toBe(bytes)
    const reads: [number, number][] = []
    const { open } = disk
    disk.open = async (name) => {
      const file = await open.call(disk, name)
      const read = async (position: number, length: number) => {
        const content = await file.read(position, length)
        reads.push([position, content.length])
        return content
      }
      return { ...file, read }
    }
    expect((await read(disk)).stamps.end).toBe(slots)
    // The first two are of the header and of the end.
    const [first, ...others] = reads.slice(2)
    expect(first).toEqual([0, 4 << 20])
    expect(others).toHaveLength(2)
    let end = 4 << 20
    for (const [position, length] of others) {
      expect(position).toBeLessThanOrEqual(end)
      expect(position).toBeGreaterThan(end - 65_600)
      end = position + length
    }
    expect(end).toBe(bytes)
  })
})

describe('a snapshot of a kernel', () => {
  /** How many frames it has, and up to which slot. */
  async function sizeOf(kernel: Partial<Described>) {
    const { info, stamps } = await read((await write(kernel)).disk)
    return { frames: info.frames, slots: stamps.end }
  }

  it('has 1024 slots in a slice, and fewer if they contain much', async () => {
    const of = (holder: string): Partial<Described> => ({
      slots: 1024,
      describe(from, to, changeSink) {
        for (let slot = from; slot < to; slot++) grant(changeSink, slot, holder)
      },
    })
    expect(await sizeOf(of('h'))).toEqual({ frames: 2, slots: 1024 })
    // Six times 32 slots are the first to have more than 128 KiB, which take three frames.
    expect(await sizeOf(of('h'.repeat(700)))).toEqual({ frames: 1 + 3 * 5 + 1, slots: 1024 })
  })

  it.each([
    ['shrinks', [3000, 10]],
    ['grows', [10, 3000]],
  ])('that %s meanwhile has all its earlier and current slots', async (_, [first, then]) => {
    let asked = 0
    const kernel = {
      revision: 9,
      get slots() {
        return asked++ === 0 ? first! : then!
      },
      describe() {},
      describeRetained: () => [],
    }
    const { disk } = await write(kernel)
    expect((await read(disk)).stamps.end).toBe(3000)
  })

  it('has the revision of its last slice, and that of now if it has none', async () => {
    let revision = 20
    const kernel = {
      get revision() {
        return revision++
      },
      slots: 1500,
      describe() {},
      describeRetained: () => [],
    }
    const { info, stamps } = await read((await write(kernel)).disk)
    expect([stamps.of(0), stamps.of(1499), info.stamp]).toEqual([20, 21, 21])
    expect((await read((await write({ revision: 30 })).disk)).info.stamp).toBe(30)
  })

  it('has the time of the store', async () => {
    const { disk } = await write({}, { shift: 1000 })
    expect((await read(disk)).info.time).toBe(new StillClock().now() - 1000)
  })

  it('has the retained data of the kernel in parts, and no part without such data', async () => {
    expect((await sizeOf({})).frames).toBe(1)
    const leases: string[] = []
    function* describeRetained(changeSink: ChangeSink) {
      for (let at = 0; at < 300; at++) {
        changeSink.remembered(`1.${at}`, { reason: 'revoked', why: 'w'.repeat(1000) })
        yield
      }
    }
    const { disk } = await write({ describeRetained })
    const info = await readSnapshotInfo(disk, 1)
    const replay = Object.assign(new Kernel().replay(), {
      remembered: (lease: string) => void leases.push(lease),
    })
    await readSnapshot(disk, info, replay)
    expect(leases).toEqual(Array.from({ length: 300 }, (_, at) => `1.${at}`))
    // Two parts of just over 128 KiB with three frames each, and the rest.
    expect(info.frames).toBe(1 + 3 + 3 + 1)
  })

  it('leaves nothing if it is aborted, and reads no more of the kernel', async () => {
    const stop = new AbortController()
    const disks: MemoryDisk[] = []
    let described = 0
    const kernel: Partial<Described> = {
      slots: 3000,
      describe(_, to) {
        described = to
        stop.abort(new Error('enough'))
      },
    }
    const signal = stop.signal
    const given = write(kernel, { signal }, (disk) => void disks.push(disk))
    await expect(given).rejects.toThrow('enough')
    expect(described).toBe(1024)
    expect([disks[0]!.files.size, disks[0]!.openFiles]).toEqual([0, 0])
  })

  it('yields to other work before each slice', async () => {
    let turns = 0
    const seen: number[] = []
    const clock = new StillClock()
    const defer = clock.defer.bind(clock)
    clock.defer = (run) => {
      turns++
      defer(run)
    }
    await write({ slots: 2048, describe: () => void seen.push(turns) }, {}, undefined, clock)
    expect([seen[0], seen.at(-1)]).toEqual([1, 2])
  })
})
