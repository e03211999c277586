import type { Disk, DiskFile } from './disk.ts'
import { extentOf, HEADER_BYTES, KIND, type Kind, PAYLOAD_MAX, putFrame } from './frame.ts'
import { SEGMENT_START, seedOf, segmentName, segmentRoom } from './segment.ts'
import type { SegmentSupply } from './segment-supply.ts'

/** A place in the log: at `offset` of a segment is, or will be, the frame with this sequence. */
export interface LogPosition {
  readonly segment: number
  readonly offset: number
  readonly sequence: number
}

/** One write holds at most so much, so that a huge group needs no second copy of itself. */
const WRITE_MAX = 1 << 20
/** Less room than this at the end of a segment is left empty rather than begin a group there. */
const PIECE_MIN = 1024

/**
 * Writes groups to the log, one after the other. A group may be larger than a segment: it is one
 * run of bytes, cut into frames wherever a frame or a segment is full, and counts only when its
 * last frame is there.
 */
export class LogWriter {
  readonly #disk: Disk
  readonly #supply: SegmentSupply
  readonly #seed: number
  #file: DiskFile
  #segment: number
  #bytes: number
  #offset: number
  #sequence: number
  #start: LogPosition
  #written = 0

  #payload: Uint8Array | undefined
  #time = 0
  #cursor = 0
  #index = 0
  /** The write that is under way, or that failed and is to be made again just as it was. */
  #write = Buffer.allocUnsafe(4096)
  #writeLength = 0
  #rolls = false

  constructor(
    disk: Disk,
    supply: SegmentSupply,
    storeId: string,
    file: DiskFile,
    bytes: number,
    position: LogPosition,
  ) {
    this.#disk = disk
    this.#supply = supply
    this.#seed = seedOf(storeId)
    this.#file = file
    this.#bytes = bytes
    this.#segment = position.segment
    this.#offset = position.offset
    this.#sequence = position.sequence
    this.#start = position
    supply.want(position.segment + 1)
  }

  /** Where the group under way begins; where there is none, where the next one will. */
  get position(): LogPosition {
    return this.#payload ? this.#start : this.#here()
  }

  /** How many bytes were written to the log since this writer was made. */
  get written(): number {
    return this.#written
  }

  /** How many bytes fit into the segments that are there. */
  get room(): number {
    const rest = this.#bytes - HEADER_BYTES - this.#offset
    const ready = this.#supply.last - this.#segment
    return rest + ready * segmentRoom(this.#supply.bytes) - this.#ungrouped()
  }

  /** Takes a group on. Its bytes must stay as they are until `finish` is fulfilled. */
  begin(payload: Uint8Array, time: number): void {
    this.#start = this.#here()
    this.#payload = payload
    this.#time = time
    this.#cursor = 0
    this.#index = 0
  }

  /**
   * Fulfilled when the group is durable. Rejected when a write, or the preparation of a segment,
   * failed; calling it again goes on with the very same bytes at the same place.
   */
  async finish(): Promise<void> {
    while (this.#payload) {
      if (this.#writeLength === 0 && !this.#rolls) {
        if (this.#mustRoll()) await this.#supply.need(this.#segment + 1)
        this.#fill()
      }
      if (this.#writeLength > 0) {
        await this.#file.writeDurably(this.#write.subarray(0, this.#writeLength), this.#offset)
        this.#offset += this.#writeLength
        this.#written += this.#writeLength
        this.#writeLength = 0
      }
      if (this.#rolls) await this.#roll()
      else if (this.#cursor === this.#payload.length) this.#payload = undefined
    }
  }

  async close(): Promise<void> {
    await this.#file.close()
  }

  #here(): LogPosition {
    return { segment: this.#segment, offset: this.#offset, sequence: this.#sequence }
  }

  #ungrouped(): number {
    return this.#payload ? extentOf(this.#payload.length - this.#cursor) + this.#writeLength : 0
  }

  /** How long a payload may be in the segment, behind what is already in the write. */
  #capacity(): number {
    return this.#bytes - 2 * HEADER_BYTES - this.#offset - this.#writeLength
  }

  #mustRoll(): boolean {
    const rest = this.#payload!.length - this.#cursor
    return this.#capacity() < rest
  }

  /** Puts frames into the write until the group, the segment or the write is full. */
  #fill(): void {
    const payload = this.#payload!
    for (;;) {
      const rest = payload.length - this.#cursor
      const capacity = this.#capacity()
      if (capacity < rest && capacity < PIECE_MIN) {
        this.#put(KIND.roll, payload.subarray(0, 0), false)
        this.#rolls = true
        return
      }
      const length = Math.min(rest, capacity, PAYLOAD_MAX)
      const last = length === rest
      this.#cursor += length
      this.#put(KIND.records, payload.subarray(this.#cursor - length, this.#cursor), last)
      if (last || this.#writeLength >= WRITE_MAX) return
    }
  }

  #put(kind: Kind, payload: Uint8Array, last: boolean): void {
    const needed = this.#writeLength + extentOf(payload.length)
    if (needed > this.#write.length) {
      const grown = Buffer.allocUnsafe(Math.max(needed, this.#write.length * 2))
      this.#write.copy(grown, 0, 0, this.#writeLength)
      this.#write = grown
    }
    const fields = {
      kind,
      last,
      time: this.#time,
      sequence: this.#sequence++,
      index: this.#index++,
    }
    const position = this.#offset + this.#writeLength
    this.#writeLength += putFrame(
      this.#write,
      this.#writeLength,
      position,
      fields,
      payload,
      this.#seed,
    )
  }

  async #roll(): Promise<void> {
    const next = this.#segment + 1
    const file = await this.#disk.open(segmentName(next))
    const bytes = await file.size()
    const old = this.#file
    this.#file = file
    this.#segment = next
    this.#bytes = bytes
    this.#offset = SEGMENT_START
    this.#rolls = false
    this.#supply.want(next + 1)
    // All that was written to it is durable, so that nothing can be lost by closing it badly.
    await old.close().catch(() => {})
  }
}
