import { crc32 } from 'node:zlib'
import { ByteReader, ByteWriter } from '../../../encoding/index.ts'
import { LeaseholdError } from '../../../port/index.ts'
import { damaged } from '../damage.ts'
import type { Disk, DiskFile } from '../disk/disk.ts'
import { ALIGNMENT, HEADER_BYTES, KIND, putFrame, readFrame } from './frame.ts'

/**
 * A segment is a file of the log. It gets its full size, its zeros and its header under a temporary
 * name. So a segment with a final name is always whole, and writing to it needs no more space.
 */
export interface SegmentInfo {
  readonly storeId: string
  readonly number: number
  readonly bytes: number
}

/** The offset of the first frame, after the header. */
export const SEGMENT_START = 128
export const SEGMENT_BYTES_MIN = 4096
export const SEGMENT_BYTES_MAX = 1 << 30

/** A folder without a manifest is damaged, unless all its files have format 1. */
const FORMAT = 2
const FORMAT_MIN = 1
export const FORMAT_WITH_MANIFEST = 2
const TEMPORARY = '.tmp'
/** Zeros are written and made durable in steps of this size, so that commits do not wait long. */
const STEP = Buffer.alloc(1 << 20)

export function segmentName(number: number): string {
  return `log-${String(number).padStart(8, '0')}`
}

/** The numbers of the segments among these names, in order. */
export function segmentNumbers(names: readonly string[]): number[] {
  return numbersOf(names, /^log-(\d{8,})$/)
}

export function snapshotName(number: number): string {
  return `snapshot-${String(number).padStart(8, '0')}`
}

export function snapshotNumbers(names: readonly string[]): number[] {
  return numbersOf(names, /^snapshot-(\d{8,})$/)
}

export const MANIFEST = 'manifest'

/** Whether a crash may have left this file unfinished. */
export function isTemporary(name: string): boolean {
  return /^((log|snapshot)-\d+|manifest)\.tmp$/.test(name)
}

export function temporaryName(name: string): string {
  return name + TEMPORARY
}

/** Part of the checksums of every frame of the store. */
export function seedOf(storeId: string): number {
  return crc32(storeId)
}

/** How many bytes fit into a segment, without the frame that ends it. */
export function segmentRoom(bytes: number): number {
  return bytes - SEGMENT_START - HEADER_BYTES
}

export async function prepareSegment(disk: Disk, info: SegmentInfo): Promise<void> {
  const name = segmentName(info.number)
  const temporary = temporaryName(name)
  try {
    const file = await disk.create(temporary)
    try {
      for (let at = 0; at < info.bytes; at += STEP.length) {
        const size = Math.min(STEP.length, info.bytes - at)
        await file.write(at === 0 ? firstStep(info, size) : STEP.subarray(0, size), at)
        await file.sync()
      }
    } finally {
      await file.close()
    }
    await disk.rename(temporary, name)
    await disk.sync()
  } catch (error) {
    // Half a segment must not use space that a release could need.
    await disk.remove(temporary).catch(() => {})
    throw error
  }
}

/** Checks that the segment is whole and returns its header. */
export async function readSegmentInfo(
  file: DiskFile,
  number: number,
  storeId: string | undefined,
): Promise<SegmentInfo & { readonly format: number }> {
  const name = segmentName(number)
  const size = await file.size()
  const info = decodeInfo(await file.read(0, SEGMENT_START), name)
  if (info.number !== number) {
    throw damaged(name, 0, `its header says that it is ${segmentName(info.number)}`)
  }
  if (storeId !== undefined && info.storeId !== storeId) {
    throw damaged(name, 0, `it belongs to the store ${info.storeId} and not to ${storeId}`)
  }
  if (size !== info.bytes) {
    throw damaged(name, Math.min(size, info.bytes), `it has ${size} bytes instead of ${info.bytes}`)
  }
  return info
}

function firstStep(info: SegmentInfo, size: number): Buffer {
  const bytes = Buffer.alloc(size)
  const payload = new ByteWriter()
  payload.integer(FORMAT)
  payload.string(info.storeId)
  payload.integer(info.number)
  payload.integer(info.bytes)
  const fields = { kind: KIND.segment, last: true, time: 0, sequence: 0, index: 0 }
  putFrame(bytes, 0, 0, fields, payload.view(), 0)
  return bytes
}

function decodeInfo(bytes: Buffer, name: string) {
  const frame = readFrame(bytes, 0, 0, KIND.segment)
  if (!frame) throw damaged(name, 0, 'its header does not match its checksum')
  const reader = new ByteReader(frame.payload)
  const format = checkFormat(reader.integer(), name)
  return { format, storeId: reader.string(), number: reader.integer(), bytes: reader.integer() }
}

export function checkFormat(format: number, name: string): number {
  if (format >= FORMAT_MIN && format <= FORMAT) return format
  throw new LeaseholdError(
    'unsupported',
    `${name} has format ${format}, but this version reads formats ${FORMAT_MIN} to ${FORMAT}: open it with the version that wrote it`,
  )
}

export function putFormat(bytes: ByteWriter): void {
  bytes.integer(FORMAT)
}

export function checkSegmentBytes(bytes: number): void {
  if (
    Number.isInteger(bytes) &&
    bytes >= SEGMENT_BYTES_MIN &&
    bytes <= SEGMENT_BYTES_MAX &&
    bytes % ALIGNMENT === 0
  ) {
    return
  }
  throw new LeaseholdError(
    'invalid-argument',
    `segmentBytes is ${bytes}: it must be a multiple of ${ALIGNMENT} from ${SEGMENT_BYTES_MIN} to ${SEGMENT_BYTES_MAX}`,
  )
}

function numbersOf(names: readonly string[], form: RegExp): number[] {
  const numbers: number[] = []
  for (const name of names) {
    const match = form.exec(name)
    if (match) numbers.push(Number(match[1]))
  }
  return numbers.sort((a, b) => a - b)
}
