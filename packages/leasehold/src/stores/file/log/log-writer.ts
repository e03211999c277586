import type { Disk, DiskFile } from '../disk/disk.ts'
import { extentOf, HEADER_BYTES, KIND, type Kind, PAYLOAD_MAX, putFrame } from './frame.ts'
import { SEGMENT_START, seedOf, segmentName, segmentRoom } from './segment.ts'
import type { SegmentSupply } from './segment-supply.ts'

/** A position in the log: the frame with this sequence is, or will be, at `offset` of a segment. */
export interface LogPosition {
  readonly segment: number
  readonly offset: number
  readonly sequence: number
}

/** The maximum size of one write, so that a huge group needs no second copy of itself. */
const WRITE_MAX = 1 << 20
/** If the end of a segment has less room than this, it stays empty instead of beginning a group. */
const PIECE_MIN = 1024

/**
 * Writes groups to the log, one after the other. A group may be larger than a segment. It is one
 * run of bytes, cut into frames wherever a frame or a segment is full. It counts only when its last
 * frame is written.
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
  /** The write in progress, or a failed write that must be repeated with the same bytes. */
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

  /** The start of the group in progress, or else of the next group. */
  get position(): LogPosition {
    return this.#payload ? this.#start : this.#here()
  }

  /** The number of bytes that this writer has written. */
  get written(): number {
    return this.#written
  }

  /** The number of bytes that still fit into the existing segments. */
  get room(): number {
    const rest = this.#bytes - HEADER_BYTES - this.#offset
    const ready = this.#supply.last - this.#segment
    return rest + ready * segmentRoom(this.#supply.bytes) - this.#unwritten()
  }

  /** Starts a group. Its bytes must not change until `finish` is fulfilled. */
  begin(payload: Uint8Array, time: number): void {
    this.#start = this.#here()
    this.#payload = payload
    this.#time = time
    this.#cursor = 0
    this.#index = 0
  }

  /**
   * Fulfilled when the group is durable. Rejected if a write, or the preparation of a segment,
   * failed; the next call continues with the same bytes at the same place.
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

  #unwritten(): number {
    return this.#payload ? extentOf(this.#payload.length - this.#cursor) + this.#writeLength : 0
  }

  /** The maximum length of a payload in this segment, after what is already in the write. */
  #capacity(): number {
    return this.#bytes - 2 * HEADER_BYTES - this.#offset - this.#writeLength
  }

  #mustRoll(): boolean {
    const rest = this.#payload!.length - this.#cursor
    return this.#capacity() < rest
  }

  /** Puts frames into the write until the group ends, or the segment or the write is full. */
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
    // Everything in it is durable, so a failure to close it loses nothing.
    await old.close().catch(() => {})
  }
}
