import { ByteWriter, RecordEncoder } from '../../../encoding/index.ts'
import type { ChangeSink } from '../../../kernel/index.ts'
import type { Clock, Revision } from '../../../port/index.ts'
import type { Disk, DiskFile } from '../disk/disk.ts'
import { extentOf, KIND, type Kind, PAYLOAD_MAX, putFrame } from '../log/frame.ts'
import type { LogPosition } from '../log/log-writer.ts'
import { putFormat, seedOf, snapshotName, temporaryName } from '../log/segment.ts'

/** What a snapshot needs of a kernel. */
export interface Described {
  readonly revision: Revision
  readonly slots: number
  describe(fromSlot: number, toSlot: number, changeSink: ChangeSink): void
  describeRetained(changeSink: ChangeSink): Iterable<void>
}

export interface SnapshotOptions {
  readonly storeId: string
  readonly number: number
  /** A position of the log at or before the start of the snapshot. */
  readonly start: LogPosition
  readonly shift: number
  /** Fulfilled when every change so far is durable in the log, with the sequence after them. */
  readonly logged: () => Promise<number>
  readonly signal: AbortSignal
  readonly sliceSlots?: number
}

/** A slice ends at this many slots or bytes: about one millisecond of work. */
export const SLICE_SLOTS = 1024
const SLICE_BYTES = 128 * 1024
/** Slots are described a few at a time, so that leases with much data end a slice early. */
const STEP_SLOTS = 32
/** The file is synced each time after this many bytes: one sync at the end would delay commits. */
const SYNC_BYTES = 4 << 20

/**
 * Writes a snapshot of a kernel while the kernel continues: one slice of slots after the other.
 * Each slice has a *stamp*: the revision of the kernel when the slice was described.
 *
 * Why a snapshot and the log from its start restore the state, although no two slices describe the
 * same moment: every record concerns the lease in one slot. A slice contains all that is known of
 * the leases in its slots at its stamp T. When the log is read, a record of revision r is skipped
 * if r <= T, because the slice contains its effect, and replayed if r > T. So each slot gets
 * exactly what happened in it after T, on top of its state at T. Slots after the last slice were
 * unused when the snapshot began, or all their records are in the log; none is skipped.
 *
 * Connections between slots follow from the slots alone. The queue of a key is its claims ordered
 * by token, in whatever order they are replayed, and its head is the holder. A child names its
 * parent's slot. Between stamps that slot can be wrong for a time, which is harmless:
 * - The parent is in a later slice, or its grant is later in the log: the child waits for it.
 * - The parent ended at revision r before its slice was described, and the child's slice was
 *   described before r. Then the child ended at r too. The stamp of its slot is below r, so the log
 *   contains its end. Until then its parent's slot is empty, or has a lease that was granted after
 *   r. The log contains the end of every lease by itself; none is inferred from a parent's. The
 *   child's end comes before any end of that later lease, whose revision is higher.
 * - The child was granted and ended with its parent between the child's stamp and the parent's: the
 *   log contains its grant and its end, and the parent's slot is as in the previous case.
 *
 * What is kept besides leases comes last, so that it includes a tenure that ended before its slice
 * was described. A tenure that is also inferred from the log is counted once, because its key and
 * token identify it. A repeated answer is the same answer.
 *
 * The slices may contain changes that the log does not contain yet. If such a snapshot were used, a
 * revision could exist in one slot and be missing in another. So the snapshot gets its name only
 * when the log contains everything up to the last stamp. It records how far that is.
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
    // Its checksums cannot depend on the store's id, which it contains.
    await this.#put(KIND.snapshot, this.#group.view(), undefined, 0)
  }

  async #writeSlices(): Promise<void> {
    // Cover all slots that were in use at the start, even if the kernel shrinks.
    const least = this.#kernel.slots
    const { sliceSlots = SLICE_SLOTS } = this.#options
    for (let from = 0; from < Math.max(least, this.#kernel.slots); ) {
      await this.#yield()
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
    // If there are no slots, the stamp is the current revision, as for an empty slice.
    if (this.#sequence === 1) this.#stamp = this.#kernel.revision
  }

  async #writeMemory(): Promise<void> {
    for (const _ of this.#kernel.describeRetained(this.#encoder)) {
      if (this.#encoder.length > SLICE_BYTES) {
        await this.#put(KIND.memory, this.#encoder.take())
      }
      await this.#yield()
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

  /** Lets other work run. */
  #yield(): Promise<void> {
    this.#options.signal.throwIfAborted()
    return new Promise((resolve) => this.#clock.defer(resolve))
  }

  /** Writes a group, unless it is empty. */
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
