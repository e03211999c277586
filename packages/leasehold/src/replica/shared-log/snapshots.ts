import type { Log, Position } from '../../log/index.ts'
import type { Clock } from '../../port/index.ts'
import { type Machine, snapshotBlocks } from '../state/index.ts'

/** Keeps the log short: saves a snapshot when the log has grown enough, and trims old entries. */
export class Snapshots {
  readonly #log: Log
  readonly #clock: Clock
  readonly #minBytes: number
  /** Bytes of entries since the last known snapshot. */
  #bytes = 0
  /** The position of the last snapshot, and its size. */
  #last: Position = 0
  #size = 0
  #saving = false
  /** How many times the replica loaded a snapshot. */
  #loads = 0

  /** A snapshot is saved after `minBytes` of entries, or after its own size if that is more. */
  constructor(log: Log, clock: Clock, minBytes: number) {
    this.#log = log
    this.#clock = clock
    this.#minBytes = minBytes
  }

  /** The replica loaded the snapshot of this position. */
  loaded(position: Position): void {
    this.#last = position
    this.#bytes = 0
    this.#loads++
  }

  countBytes(bytes: number): void {
    this.#bytes += bytes
  }

  /** Makes a snapshot due now. */
  requestSoon(): void {
    this.#bytes = Math.max(this.#bytes, this.#minBytes, this.#size)
  }

  /** Call it after entries were applied. The first member saves first; the others wait longer. */
  saveIfDue(machine: Machine, rank: number): void {
    if (this.#saving || this.#bytes < Math.max(this.#minBytes, this.#size) * (1 + rank)) return
    this.#saving = true
    this.#bytes = 0
    // A failure does no harm: the log stays longer until the next snapshot.
    this.#save(machine)
      .catch(() => {})
      .finally(() => {
        this.#saving = false
      })
  }

  async #save(machine: Machine): Promise<void> {
    const copy = machine.copy()
    const { position } = copy
    const loads = this.#loads
    const chunks = new Chunks(this.#log.promises.entryBytes)
    for (const block of snapshotBlocks(copy)) {
      chunks.add(block)
      await new Promise<void>((resolve) => this.#clock.defer(resolve))
    }
    // After a reload the copy may contain entries that the log has lost.
    if (loads !== this.#loads) return
    await this.#log.saveSnapshot({ position, chunks: chunks.all() })
    const before = this.#last
    this.#last = position
    this.#size = chunks.size
    // Trim only to the previous snapshot, so that a replica that is slightly behind need not reload.
    if (before > 0) await this.#log.trim(before)
  }
}

/** Splits bytes into chunks that each fit into an entry. */
class Chunks {
  readonly #max: number
  readonly #full: Uint8Array[] = []
  #last = Buffer.alloc(0)
  #used = 0

  constructor(max: number) {
    this.#max = max
  }

  get size(): number {
    return this.#full.length * this.#max + this.#used
  }

  add(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) {
      if (this.#used === this.#last.length) this.#grow(bytes.length - at)
      const part = bytes.subarray(at, at + this.#last.length - this.#used)
      this.#last.set(part, this.#used)
      this.#used += part.length
      at += part.length
    }
  }

  all(): Uint8Array[] {
    return [...this.#full, this.#last.subarray(0, this.#used)]
  }

  #grow(needed: number): void {
    if (this.#used === this.#max) {
      this.#full.push(this.#last)
      this.#last = Buffer.alloc(0)
      this.#used = 0
    }
    const size = Math.min(this.#max, Math.max(2 * this.#used, this.#used + needed, 4096))
    const grown = Buffer.allocUnsafe(size)
    grown.set(this.#last)
    this.#last = grown
  }
}
