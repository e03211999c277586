import { ByteReader, decodeRecords } from '../../../encoding/index.ts'
import type { Replay } from '../../../kernel/index.ts'
import type { Revision } from '../../../port/index.ts'
import { contradictory, damaged } from '../damage.ts'
import type { Disk, DiskFile } from '../disk/disk.ts'
import {
  extentOf,
  HEADER_BYTES,
  type Header,
  KIND,
  type Kind,
  PAYLOAD_MAX,
  readFrame,
} from '../log/frame.ts'
import type { LogPosition } from '../log/log-writer.ts'
import { checkFormat, seedOf, snapshotName } from '../log/segment.ts'
import { SLICE_SLOTS } from './snapshot-writer.ts'

/** The header and the end of a snapshot. */
export interface SnapshotInfo {
  readonly format: number
  readonly number: number
  readonly storeId: string
  readonly bytes: number
  readonly start: LogPosition
  /** The revision at which its last slice was described. */
  readonly stamp: Revision
  /** The log must reach at least the frame before this one. */
  readonly logged: number
  readonly frames: number
  readonly time: number
}

/** Three numbers of eight bytes each. */
const END_LENGTH = 24
const READ_BYTES = 4 << 20

/** Reads the header and the end of a snapshot. It is whole only if both exist. */
export async function readSnapshotInfo(disk: Disk, number: number): Promise<SnapshotInfo> {
  const name = snapshotName(number)
  const file = await disk.open(name)
  try {
    const bytes = await file.size()
    const head = await file.read(0, 4096)
    const { payload } = frameAt(head, 0, name, 0, 0, KIND.snapshot)
    const reader = new ByteReader(payload)
    const format = checkFormat(reader.integer(), name)
    const storeId = reader.string()
    const found = reader.integer()
    if (found !== number) {
      throw damaged(name, 0, `its header says that it is ${snapshotName(found)}`)
    }
    const start = {
      segment: reader.integer(),
      offset: reader.integer(),
      sequence: reader.integer(),
    }
    const at = bytes - extentOf(END_LENGTH)
    if (at < HEADER_BYTES) throw damaged(name, bytes, 'its end is missing')
    const tail = await file.read(at, extentOf(END_LENGTH))
    const end = frameAt(tail, 0, name, at, seedOf(storeId), KIND.end)
    const numbers = new ByteReader(end.payload)
    const [stamp, frames, logged] = [numbers.float(), numbers.float(), numbers.float()]
    const { time } = end.header
    return { format, number, storeId, bytes, start, stamp, frames, logged, time }
  } finally {
    await file.close()
  }
}

/** The revision at which the snapshot described each slot. */
export class Stamps {
  readonly #ends: number[] = []
  readonly #stamps: Revision[] = []

  /** The slots below this one are covered. */
  get end(): number {
    return this.#ends.at(-1) ?? 0
  }

  add(to: number, stamp: Revision): void {
    this.#ends.push(to)
    this.#stamps.push(stamp)
  }

  /** 0 for a slot that the snapshot does not cover. */
  of(slot: number): Revision {
    let low = 0
    let high = this.#ends.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#ends[middle]! <= slot) low = middle + 1
      else high = middle
    }
    return this.#stamps[low] ?? 0
  }
}

/** Replays a snapshot into a kernel. */
export async function readSnapshot(
  disk: Disk,
  info: SnapshotInfo,
  replay: Replay,
): Promise<Stamps> {
  const name = snapshotName(info.number)
  const file = await disk.open(name)
  const stamps = new Stamps()
  try {
    let parts: Buffer[] = []
    for await (const { header, payload, at } of frames(file, info, name)) {
      parts.push(payload)
      if (!header.last) continue
      const group = parts.length === 1 ? payload : Buffer.concat(parts)
      parts = []
      try {
        replayGroup(header, group, replay, stamps)
      } catch (error) {
        throw contradictory(name, at, error)
      }
    }
  } finally {
    await file.close()
  }
  return stamps
}

function replayGroup(header: Header, group: Buffer, replay: Replay, stamps: Stamps): void {
  if (header.kind === KIND.memory) {
    decodeRecords(group, replay, (_revision, slot) => {
      throw new RangeError(`slot ${slot} is in none of the slices`)
    })
  } else if (header.kind === KIND.slice) {
    const reader = new ByteReader(group)
    const stamp = reader.integer()
    const from = reader.integer()
    const to = reader.integer()
    if (from !== stamps.end || to <= from || to - from > SLICE_SLOTS) {
      throw new RangeError(
        `a slice has the slots ${from} to ${to - 1}, but must begin with slot ${stamps.end} and have at most ${SLICE_SLOTS}`,
      )
    }
    stamps.add(to, stamp)
    replay.covers(to)
    decodeRecords(group.subarray(reader.position), replay, (_revision, slot) => {
      if (slot >= from && slot < to) return true
      throw new RangeError(`slot ${slot} is in the slice of the slots ${from} to ${to - 1}`)
    })
  } else if (header.kind !== KIND.snapshot && header.kind !== KIND.end) {
    throw new RangeError(`a frame has the unknown kind ${header.kind}`)
  }
}

/** All frames in order, each checked. The file may be much larger than one read. */
async function* frames(file: DiskFile, info: SnapshotInfo, name: string) {
  let window: Buffer = Buffer.alloc(0)
  let base = 0
  let at = 0
  for (let sequence = 0; at < info.bytes; sequence++) {
    if (at + extentOf(PAYLOAD_MAX) > base + window.length && base + window.length < info.bytes) {
      window = await file.read(at, READ_BYTES)
      base = at
    }
    const seed = sequence === 0 ? 0 : seedOf(info.storeId)
    const frame = frameAt(window, at - base, name, at, seed)
    if (frame.header.sequence !== sequence) {
      throw damaged(name, at, `frame ${frame.header.sequence} is where frame ${sequence} must be`)
    }
    yield { ...frame, at }
    at += extentOf(frame.header.length)
    if (frame.header.kind === KIND.end && sequence !== info.frames) {
      throw damaged(name, at, `it has ${sequence} frames instead of ${info.frames}`)
    }
  }
}

function frameAt(
  window: Buffer,
  at: number,
  name: string,
  position: number,
  seed: number,
  kind?: Kind,
): { header: Header; payload: Buffer } {
  const frame = readFrame(window, at, seed, kind)
  if (frame) return frame
  const isEnd = kind === KIND.end
  const why = isEnd ? 'its end is missing' : 'a frame does not match its checksum'
  throw damaged(name, position, why)
}
