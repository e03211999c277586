import { contradictory, damaged, missing } from '../damage.ts'
import type { Disk, DiskFile } from '../disk/disk.ts'
import {
  extentOf,
  groupOf,
  HEADER_BYTES,
  isTorn,
  isZero,
  KIND,
  readHeader,
  readPayload,
} from './frame.ts'
import type { LogPosition } from './log-writer.ts'
import { readSegmentInfo, SEGMENT_START, seedOf, segmentName } from './segment.ts'

/** The result of reading the log to its end. */
export interface LogEnd {
  readonly storeId: string
  /** The position of the next group. */
  readonly position: LogPosition
  /** The time of the last group; `undefined` if there is none. */
  readonly time: number | undefined
  /** The number of bytes in the groups that were read. */
  readonly bytes: number
  /** The remains of an unfinished group, to be wiped in this order. */
  readonly remains: readonly Remains[]
}

export interface Remains {
  readonly segment: number
  readonly from: number
  readonly to: number
}

/** The start of the log if there is no snapshot that names it. */
export const LOG_BEGIN: LogPosition = { segment: 1, offset: SEGMENT_START, sequence: 1 }

/**
 * Reads the groups of the log in order and checks every frame.
 *
 * The log ends where zeros begin. Its end may contain the remains of a group that was being written
 * when the power failed or the process died. Nobody got an answer for that group, so it is dropped.
 * These rules identify such remains; everything else is refused:
 *
 * - One group is written at a time, and only when the previous one is durable. So no frame of
 *   another group can follow. If one does, what is missing here was once durable.
 * - A missing part consists of whole sectors of zeros: see `frame.ts`.
 * - The writer leaves a segment only when the frame that says so is durable and the next segment
 *   exists. So a missing segment is always noticed.
 */
export class LogReader {
  readonly #disk: Disk
  readonly #segments: ReadonlySet<number>
  readonly #lastSegment: number
  readonly #onGroup: (payload: Buffer) => void
  #storeId: string | undefined
  #seed = 0
  #sequence = 0
  #time: number | undefined
  #bytes = 0
  /** The frames of a group whose last frame was not read yet, and their positions. */
  #parts: Buffer[] = []
  #begun: LogPosition[] = []
  #count = 0

  constructor(
    disk: Disk,
    segments: readonly number[],
    storeId: string | undefined,
    onGroup: (payload: Buffer) => void,
  ) {
    this.#disk = disk
    this.#segments = new Set(segments)
    this.#lastSegment = segments.at(-1) ?? 0
    this.#storeId = storeId
    this.#onGroup = onGroup
  }

  async read(start: LogPosition): Promise<LogEnd> {
    this.#sequence = start.sequence
    let { segment, offset } = start
    for (;;) {
      const end = await this.#withSegment(segment, (bytes) => this.#scan(segment, bytes, offset))
      if (end !== 'rolls') {
        await this.#checkUnused(segment + 1)
        return this.#finish(segment, end.offset, end.garbage)
      }
      segment++
      offset = SEGMENT_START
    }
  }

  /** Reads frames up to the end of the log, or to the frame that leads to the next segment. */
  #scan(
    segment: number,
    bytes: Buffer,
    start: number,
  ): 'rolls' | { offset: number; garbage: number } {
    const name = segmentName(segment)
    let offset = start
    for (;;) {
      const header = readHeader(bytes, offset, this.#seed)
      if (header === 'bad') throw damaged(name, offset, 'a header does not match its checksum')
      if (header === 'zero') return { offset, garbage: this.#tail(name, bytes, offset) }
      if (header.sequence !== this.#sequence || header.index !== this.#count) {
        throw damaged(
          name,
          offset,
          `frame ${header.sequence} is where frame ${this.#sequence} must be`,
        )
      }
      const payload = readPayload(bytes, offset, header, this.#seed)
      if (payload === undefined) {
        if (!isTorn(bytes, offset, offset, header)) {
          throw damaged(name, offset, `frame ${header.sequence} does not match its checksum`)
        }
        return { offset, garbage: this.#tail(name, bytes, offset) }
      }
      this.#begun.push({ segment, offset, sequence: header.sequence })
      this.#count++
      this.#sequence++
      offset += extentOf(header.length)
      this.#bytes += extentOf(header.length)
      if (header.kind === KIND.roll) return 'rolls'
      if (header.kind !== KIND.records) {
        throw damaged(name, offset, `a frame has the unknown kind ${header.kind}`)
      }
      this.#parts.push(payload)
      if (header.last) this.#group(name, offset, header.time)
    }
  }

  #group(name: string, offset: number, time: number): void {
    const payload = this.#parts.length === 1 ? this.#parts[0]! : Buffer.concat(this.#parts)
    try {
      this.#onGroup(payload)
    } catch (error) {
      throw contradictory(name, offset, error)
    }
    this.#time = time
    this.#parts = []
    this.#begun = []
    this.#count = 0
  }

  /** The end of the last byte of an unfinished write; throws if a later group appears. */
  #tail(name: string, bytes: Buffer, offset: number): number {
    const group = this.#begun[0]?.sequence ?? this.#sequence
    let garbage = offset
    for (let at = offset; at < bytes.length; at += CHUNK) {
      const end = Math.min(at + CHUNK, bytes.length)
      if (isZero(bytes, at, end)) continue
      for (let cell = at; cell < end; cell += HEADER_BYTES) {
        const header = readHeader(bytes, cell, this.#seed)
        if (header === 'zero') continue
        garbage = cell + HEADER_BYTES
        if (header !== 'bad' && groupOf(header) !== group) {
          throw damaged(
            name,
            offset,
            `frame ${this.#sequence} is missing, but frame ${header.sequence} follows at byte ${cell}`,
          )
        }
      }
    }
    return garbage
  }

  /** Segments that were prepared for later must be empty. */
  async #checkUnused(from: number): Promise<void> {
    for (let segment = from; segment <= this.#lastSegment; segment++) {
      await this.#withSegment(segment, (bytes) => {
        if (isZero(bytes, SEGMENT_START, bytes.length)) return
        throw damaged(
          segmentName(segment),
          SEGMENT_START,
          `it is in use, but the log ends in ${segmentName(from - 1)} before it`,
        )
      })
    }
  }

  #finish(segment: number, offset: number, garbage: number): LogEnd {
    const remains: Remains[] = []
    if (garbage > offset) remains.push({ segment, from: offset, to: garbage })
    // The later part goes first: without the earlier part, the later one would look like damage.
    for (const part of this.#begun.toReversed()) {
      const last = remains.at(-1)
      if (last?.segment === part.segment) {
        remains[remains.length - 1] = { ...last, from: part.offset }
      } else {
        const to = part.segment === segment ? offset : Infinity
        remains.push({ segment: part.segment, from: part.offset, to })
      }
    }
    return {
      storeId: this.#storeId!,
      position: this.#begun[0] ?? { segment, offset, sequence: this.#sequence },
      time: this.#time,
      bytes: this.#bytes,
      remains,
    }
  }

  async #withSegment<T>(segment: number, use: (bytes: Buffer) => T): Promise<T> {
    const name = segmentName(segment)
    if (!this.#segments.has(segment)) {
      throw missing(name, `the log needs it${this.#lastSegment > segment ? ' and continues' : ''}`)
    }
    const file = await this.#disk.open(name)
    try {
      const info = await readSegmentInfo(file, segment, this.#storeId)
      this.#storeId = info.storeId
      this.#seed = seedOf(info.storeId)
      return use(await file.read(0, info.bytes))
    } finally {
      await file.close()
    }
  }
}

/** Overwrites the remains with zeros, so that the log ends before them. Durable when fulfilled. */
export async function wipe(disk: Disk, remains: readonly Remains[]): Promise<void> {
  for (const { segment, from, to } of remains) {
    const file = await disk.open(segmentName(segment))
    try {
      await zero(file, from, Math.min(to, await file.size()))
    } finally {
      await file.close()
    }
  }
}

async function zero(file: DiskFile, from: number, to: number): Promise<void> {
  for (let at = from; at < to; at += ZEROS.length) {
    await file.writeDurably(ZEROS.subarray(0, Math.min(ZEROS.length, to - at)), at)
  }
}

const CHUNK = 4096
const ZEROS = Buffer.alloc(1 << 20)
