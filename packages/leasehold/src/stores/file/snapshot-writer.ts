import { ByteWriter, RecordEncoder } from '../../encoding/index.ts'
import type { ChangeSink } from '../../kernel/index.ts'
import type { Clock, Revision } from '../../port/index.ts'
import type { Disk, DiskFile } from './disk.ts'
import { extentOf, KIND, type Kind, PAYLOAD_MAX, putFrame } from './frame.ts'
import type { LogPosition } from './log-writer.ts'
import { putFormat, seedOf, snapshotName, temporaryName } from './segment.ts'

/** What a snapshot asks of a kernel. */
export interface Described {
  readonly revision: Revision
  readonly slots: number
  describe(fromSlot: number, toSlot: number, changeSink: ChangeSink): void
  describeRetained(changeSink: ChangeSink): Iterable<void>
}

export interface SnapshotOptions {
  readonly storeId: string
  readonly number: number
  /** Where the log stands as the snapshot begins, or before. */
  readonly start: LogPosition
  readonly shift: number
  /** Fulfilled, with the sequence after it, when all that was told so far is durable in the log. */
  readonly logged: () => Promise<number>
  readonly signal: AbortSignal
  /** How many slots a slice has at most. */
  readonly sliceSlots?: number
}

/** A slice is closed when it has so many slots or so many bytes: about a millisecond's work. */
export const SLICE_SLOTS = 1024
const SLICE_BYTES = 128 * 1024
/** Slots are described a few at a time, so that leases with much to tell close a slice early. */
const STEP_SLOTS = 32
/** Written so much, it is made durable, lest all at the end make commits wait for it. */
const SYNC_BYTES = 4 << 20

/**
 * Writes a snapshot of a kernel while the kernel goes on: one slice of slots after the other, each
 * with the revision that the kernel had when it was described, its *stamp*.
 *
 * Why a snapshot and the log from its start give the state that was, although no two slices are of
 * the same moment. Every record is about the lease in one slot, and a slice holds all that is known
 * of the leases in its slots as of its stamp T. From the log a record of revision r is skipped if
 * r <= T, since the slice has its effect, and told if r > T. So each slot, by itself, is told
 * exactly what happened in it after T, on top of what it was at T. Slots past the last slice had
 * never been used when the log's part began, or all their records are in it; nothing is skipped.
 *
 * What connects slots is made from them alone. The line on a key is its claims ordered by token,
 * whatever order they are told in, and who holds it is a function of the line. A child names its
 * parent's slot; between stamps that slot can be wrong for a time, and this is harmless:
 * - The parent is in a later slice, or its grant is later in the log: the child waits for it.
 * - The parent had ended at revision r before its slice was described, the child's slice was
 *   described before r. The child ended in r as well and its slot's stamp is below r, so the log
 *   tells its end. Until then its parent's slot is empty, or has a lease that was granted after r.
 *   An end is told for every lease by itself, never concluded from a parent's, and the child's is
 *   told before any end of that later lease, whose revision is higher.
 * - The child was granted and ended with its parent between the child's stamp and the parent's: the
 *   log tells both its grant and its end, and the parent's slot is as in the case before.
 *
 * What is remembered beside leases comes last, so that a tenure which ended before its slice was
 * described is in it; a tenure that is told here and again concluded from the log is one, known by
 * its key and token. An answer told twice is the same answer.
 *
 * The slices may hold changes that the log does not have yet. Were the snapshot taken up without
 * them, a revision could be there in one slot and not in another. So it gets its name only when
 * the log has everything up to the last stamp, and it notes how far that is.
 */
export async function writeSnapshot(
  disk: Disk,
  clock: Clock,
  kernel: Described,
  options: SnapshotOptions,
): Promise<number> {
  const name = snapshotName(options.number)
  const temporary = temporaryName(name)
  try {
    const file = await disk.create(temporary)
    let bytes: number
    try {
      const writer = new SnapshotWriter(file, clock, kernel, options)
      bytes = await writer.write()
    } finally {
      await file.close()
    }
    await disk.rename(temporary, name)
    await disk.sync()
    return bytes
  } catch (error) {
    await disk.remove(temporary).catch(() => {})
    throw error
  }
}

class SnapshotWriter {
  readonly #file: DiskFile
  readonly #clock: Clock
  readonly #kernel: Described
  readonly #options: SnapshotOptions
  readonly #seed: number
  readonly #encoder = new RecordEncoder()
  readonly #group = new ByteWriter()
  #sequence = 0
  #offset = 0
  #synced = 0
  #stamp: Revision = 0

  constructor(file: DiskFile, clock: Clock, kernel: Described, options: SnapshotOptions) {
    this.#file = file
    this.#clock = clock
    this.#kernel = kernel
    this.#options = options
    this.#seed = seedOf(options.storeId)
    this.#encoder.shift = options.shift
  }

  async write(): Promise<number> {
    await this.#writeHeader()
    await this.#writeSlices()
    await this.#writeMemory()
    await this.#writeEnd()
    return this.#offset
  }

  async #writeHeader(): Promise<void> {
    const { storeId, number, start } = this.#options
    this.#group.clear()
    putFormat(this.#group)
    this.#group.string(storeId)
    this.#group.integer(number)
    this.#group.integer(start.segment)
    this.#group.integer(start.offset)
    this.#group.integer(start.sequence)
    // Its checksums cannot depend on what it is there to say.
    await this.#put(KIND.snapshot, this.#group.view(), undefined, 0)
  }

  async #writeSlices(): Promise<void> {
    // What is in use as the log's part begins must be covered, even if the kernel shrinks.
    const least = this.#kernel.slots
    const { sliceSlots = SLICE_SLOTS } = this.#options
    for (let from = 0; from < Math.max(least, this.#kernel.slots); ) {
      await this.#breathe()
      const end = Math.min(from + sliceSlots, Math.max(least, this.#kernel.slots))
      let to = from
      while (to < end && this.#encoder.length < SLICE_BYTES) {
        const next = Math.min(to + STEP_SLOTS, end)
        this.#kernel.describe(to, next, this.#encoder)
        to = next
      }
      this.#stamp = this.#kernel.revision
      this.#group.clear()
      this.#group.integer(this.#stamp)
      this.#group.integer(from)
      this.#group.integer(to)
      await this.#put(KIND.slice, this.#group.view(), this.#encoder.take())
      from = to
    }
    // Where there is no slot at all the stamp is that of now, as for an empty slice.
    if (this.#sequence === 1) this.#stamp = this.#kernel.revision
  }

  async #writeMemory(): Promise<void> {
    for (const _ of this.#kernel.describeRetained(this.#encoder)) {
      if (this.#encoder.length > SLICE_BYTES) {
        await this.#put(KIND.memory, this.#encoder.take())
      }
      await this.#breathe()
    }
    await this.#put(KIND.memory, this.#encoder.take())
  }

  async #writeEnd(): Promise<void> {
    const logged = await this.#options.logged()
    this.#options.signal.throwIfAborted()
    this.#group.clear()
    this.#group.float(this.#stamp)
    this.#group.float(this.#sequence)
    this.#group.float(logged)
    await this.#put(KIND.end, this.#group.view())
    await this.#file.sync()
  }

  /** Lets everything else have its turn. */
  #breathe(): Promise<void> {
    this.#options.signal.throwIfAborted()
    return new Promise((resolve) => this.#clock.defer(resolve))
  }

  /** Writes a group; nothing if it is empty. */
  async #put(kind: Kind, head: Buffer, body?: Buffer, seed = this.#seed): Promise<void> {
    const payload = body ? Buffer.concat([head, body]) : head
    const pieces = Math.ceil(payload.length / PAYLOAD_MAX)
    const frames = Buffer.allocUnsafe(pieces * extentOf(PAYLOAD_MAX))
    const time = this.#clock.now() - this.#options.shift
    let length = 0
    for (let index = 0, cursor = 0; cursor < payload.length; index++) {
      const end = Math.min(cursor + PAYLOAD_MAX, payload.length)
      const last = end === payload.length
      const fields = { kind, last, time, sequence: this.#sequence++, index }
      const piece = payload.subarray(cursor, end)
      length += putFrame(frames, length, this.#offset + length, fields, piece, seed)
      cursor = end
    }
    await this.#file.write(frames.subarray(0, length), this.#offset)
    this.#offset += length
    if (this.#offset - this.#synced > SYNC_BYTES) {
      await this.#file.sync()
      this.#synced = this.#offset
    }
  }
}
