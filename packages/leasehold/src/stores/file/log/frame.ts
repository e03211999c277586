import { crc32 } from 'node:zlib'

/**
 * Frames: the layout of bytes in a file. It reveals all damage, and separates damage from a last
 * write that a power failure interrupted.
 *
 * A frame is a header and a payload, each with a checksum. Frames that belong together form a
 * *group*; the last one is marked. A group with a missing part counts as never written.
 *
 * A disk writes sectors of 512 bytes. After a power failure each sector is the new one or the old
 * one. The old ones are zeros, because files are filled with zeros before use. To separate this
 * from damage:
 * - Frames begin at multiples of 32 bytes and a header has 32 bytes. So a header lies in one sector
 *   and is there completely or not at all. A header that is neither right nor zero is damage.
 * - No sector of a payload is ever written as zeros: if it would be, the payload is masked. A
 *   payload with a wrong checksum was torn if it has a sector of zeros, and is damaged otherwise.
 *
 *     0  magic (3 bytes), mask      16  sequence (6 bytes)
 *     4  length (3 bytes), kind     22  index in its group
 *     8  time                       24  checksum of the payload, as it is in the file
 *                                   28  checksum of the header up to here
 */
export const ALIGNMENT = 32
export const HEADER_BYTES = 32
export const SECTOR_BYTES = 512

/**
 * Short enough that one of the 256 masks always leaves no sector as zeros: each of the at most 130
 * sectors excludes one mask.
 */
export const PAYLOAD_MAX = 64 * 1024

export type Kind = (typeof KIND)[keyof typeof KIND]

/** Stored in files: never change the meaning of a number, only add numbers. */
export const KIND = {
  /** The first frame of a segment of the log. */
  segment: 1,
  /** Records of the log. */
  records: 2,
  /** The log continues in the next segment. */
  roll: 3,
  /** The first frame of a snapshot. */
  snapshot: 4,
  /** The leases of a range of slots, in a snapshot. */
  slice: 5,
  /** What a kernel keeps besides leases, in a snapshot. */
  memory: 6,
  /** The last frame of a snapshot. */
  end: 7,
  /** A slot of the manifest. */
  manifest: 8,
} as const

export interface Header {
  readonly kind: Kind
  readonly last: boolean
  readonly length: number
  readonly time: number
  readonly sequence: number
  /** How many frames of its group come before it. */
  readonly index: number
  readonly mask: number
  readonly checksum: number
}

export type FrameFields = Pick<Header, 'kind' | 'last' | 'time' | 'sequence' | 'index'>

/** The number of bytes in a file for a frame with a payload of this length. */
export function extentOf(length: number): number {
  return Math.ceil((HEADER_BYTES + length) / ALIGNMENT) * ALIGNMENT
}

/**
 * Writes a frame to `target` at `at`. Its `position` in the file decides where sectors begin.
 * `seed` differs between stores and is part of the checksums: neither a frame of another store nor
 * a value that looks like a frame passes for a frame of this store.
 */
export function putFrame(
  target: Buffer,
  at: number,
  position: number,
  fields: FrameFields,
  payload: Uint8Array,
  seed: number,
): number {
  const extent = extentOf(payload.length)
  const start = at + HEADER_BYTES
  const end = start + payload.length
  target.set(payload, start)
  target.fill(0, end, at + extent)
  const mask = chooseMask(target, at, position, end)
  if (mask !== 0) applyMask(target, start, end, mask)
  target.writeUIntLE(MAGIC, at, 3)
  target[at + 3] = mask
  target.writeUIntLE(payload.length, at + 4, 3)
  target[at + 7] = fields.kind | (fields.last ? LAST : 0)
  target.writeDoubleLE(fields.time, at + 8)
  target.writeUIntLE(fields.sequence, at + 16, 6)
  target.writeUInt16LE(Math.min(fields.index, INDEX_MAX), at + 22)
  target.writeUInt32LE(crc32(target.subarray(start, end), seed), at + 24)
  target.writeUInt32LE(crc32(target.subarray(at, at + 28), seed), at + 28)
  return extent
}

/** The header at `at`; `zero` if nothing was written there, `bad` if it is not what was written. */
export function readHeader(source: Buffer, at: number, seed: number): Header | 'zero' | 'bad' {
  if (at + HEADER_BYTES > source.length) return 'bad'
  if (source.readUIntLE(at, 3) !== MAGIC) {
    return isZero(source, at, at + HEADER_BYTES) ? 'zero' : 'bad'
  }
  if (crc32(source.subarray(at, at + 28), seed) !== source.readUInt32LE(at + 28)) return 'bad'
  const kind = source[at + 7]!
  return {
    kind: (kind & ~LAST) as Kind,
    last: (kind & LAST) !== 0,
    length: source.readUIntLE(at + 4, 3),
    time: source.readDoubleLE(at + 8),
    sequence: source.readUIntLE(at + 16, 6),
    index: source.readUInt16LE(at + 22),
    mask: source[at + 3]!,
    checksum: source.readUInt32LE(at + 24),
  }
}

/** The payload of the frame at `at`; `undefined` if it is not what was written. */
export function readPayload(
  source: Buffer,
  at: number,
  header: Header,
  seed: number,
): Buffer | undefined {
  const start = at + HEADER_BYTES
  const end = start + header.length
  if (end > source.length) return undefined
  const payload = source.subarray(start, end)
  if (crc32(payload, seed) !== header.checksum) return undefined
  if (!isZero(source, end, Math.min(at + extentOf(header.length), source.length))) return undefined
  if (header.mask === 0) return payload
  const plain = Buffer.from(payload)
  applyMask(plain, 0, plain.length, header.mask)
  return plain
}

/** The frame at `at`; `undefined` if it is not what was written, or not of this kind. */
export function readFrame(
  source: Buffer,
  at: number,
  seed: number,
  kind?: Kind,
): { header: Header; payload: Buffer } | undefined {
  const header = readHeader(source, at, seed)
  if (typeof header === 'string') return undefined
  if (kind !== undefined && header.kind !== kind) return undefined
  const payload = readPayload(source, at, header, seed)
  return payload && { header, payload }
}

/** Whether a sector of this frame was never written. No writer leaves one out on purpose. */
export function isTorn(source: Buffer, at: number, position: number, header: Header): boolean {
  const end = Math.min(at + HEADER_BYTES + header.length, source.length)
  for (const [from, to] of sectorsAfterFirst(at, position, end)) {
    if (isZero(source, from, to)) return true
  }
  return false
}

/** The place of a group among the groups: the sequence of its first frame. */
export function groupOf(header: Header): number {
  return header.sequence - header.index
}

export function isZero(source: Buffer, from: number, to: number): boolean {
  for (let at = from; at < to; at += ZEROS.length) {
    const end = Math.min(at + ZEROS.length, to)
    if (source.compare(ZEROS, 0, end - at, at, end) !== 0) return false
  }
  return true
}

const MAGIC = 0x46484c // 'LHF'
const LAST = 0x80
const INDEX_MAX = 0xffff
const ZEROS = Buffer.alloc(64 * 1024)

/** The parts of a frame's sectors that contain payload, except the first, which has the header. */
function* sectorsAfterFirst(at: number, position: number, end: number) {
  let from = at + SECTOR_BYTES - (position % SECTOR_BYTES)
  for (; from < end; from += SECTOR_BYTES) {
    yield [from, Math.min(from + SECTOR_BYTES, end)] as const
  }
}

function chooseMask(target: Buffer, at: number, position: number, end: number): number {
  const first = at + SECTOR_BYTES - (position % SECTOR_BYTES)
  let clean = true
  for (let from = first; from < end && clean; from += SECTOR_BYTES) {
    clean = target[from] !== 0 || !isZero(target, from, Math.min(from + SECTOR_BYTES, end))
  }
  if (clean) return 0
  const taken = new Set<number>()
  for (const [from, to] of sectorsAfterFirst(at, position, end)) {
    const value = target[from]!
    if (target.subarray(from, to).every((byte) => byte === value)) taken.add(value)
  }
  let mask = 1
  while (taken.has(mask)) mask++
  return mask
}

function applyMask(bytes: Buffer, from: number, to: number, mask: number): void {
  for (let at = from; at < to; at++) bytes[at] = bytes[at]! ^ mask
}
