import { crc32 } from 'node:zlib'

/**
 * Frames: how bytes lie in a file so that damage is always noticed, and is never confused with
 * what the failure of the power leaves of the last write.
 *
 * A frame is a header and a payload, each with a checksum. What belongs together is a *group* of
 * one frame or more, the last of which says so; a group of which a part is missing never was.
 *
 * A disk writes sectors of 512 bytes: after a failure of the power each is the new one or the old
 * one, and the old ones are zeros, because files are filled with zeros before they are used. So
 * that this can be told from damage:
 * - Frames begin at multiples of 32 bytes and a header has 32 bytes, so that it lies in one sector
 *   and is there as a whole or not at all. A header that is neither right nor zero is damage.
 * - No sector of a payload is ever written as zeros: where the payload has such, its bytes are
 *   masked. A payload whose checksum is wrong and that has a sector of zeros was torn; one that
 *   has none is damaged.
 *
 *     0  magic (3 bytes), mask      16  sequence (6 bytes)
 *     4  length (3 bytes), kind     22  index in its group
 *     8  time                       24  checksum of the payload, as it lies in the file
 *                                   28  checksum of the header up to here
 */
export const ALIGNMENT = 32
export const HEADER_BYTES = 32
export const SECTOR_BYTES = 512

/**
 * Short enough that among the 256 masks there is always one that leaves no sector as zeros: each
 * of the at most 130 sectors rules out one.
 */
export const PAYLOAD_MAX = 64 * 1024

export type Kind = (typeof KIND)[keyof typeof KIND]

/** In files: never change what one of them means, only add. */
export const KIND = {
  /** The first frame of a segment of the log. */
  segment: 1,
  /** Records of the log. */
  records: 2,
  /** The log goes on in the next segment. */
  roll: 3,
  /** The first frame of a snapshot. */
  snapshot: 4,
  /** The leases of a range of slots, in a snapshot. */
  slice: 5,
  /** What a kernel remembers besides leases, in a snapshot. */
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

/** How much of a file a frame with a payload of this length takes. */
export function extentOf(length: number): number {
  return Math.ceil((HEADER_BYTES + length) / ALIGNMENT) * ALIGNMENT
}

/**
 * Writes a frame to `target` at `at`, where it will lie in its file at the same place modulo the
 * size of a sector. `seed` is part of the checksums: the store's own, so that neither another
 * store's frame nor a value that looks like one can pass for one of this store.
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

/** The header at `at`; `zero` where nothing was written, `bad` where it is not what was written. */
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

/** The payload of the frame at `at`, or nothing where it is not what was written. */
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

/** The frame at `at`, or nothing where it is not what was written, or not of this kind. */
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

/** Whether a part of this frame was never written, which no writer leaves on purpose. */
export function isTorn(source: Buffer, at: number, position: number, header: Header): boolean {
  const end = Math.min(at + HEADER_BYTES + header.length, source.length)
  for (const [from, to] of sectorsAfterFirst(at, position, end)) {
    if (isZero(source, from, to)) return true
  }
  return false
}

/** A group's place among groups: the sequence of its first frame. */
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

/** The parts of a frame's sectors that hold payload, but for the first, which has the header. */
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
