import type { Log, Position } from '../log/index.ts'
import type { Clock } from '../port/index.ts'
import type { Machine } from './machine.ts'
import { snapshotBlocks } from './snapshot-format.ts'

/** Keeps the log short: saves a snapshot when it has grown enough, and trims what is before. */
export class Snapshots {
  readonly #log: Log
  readonly #clock: Clock
  readonly #every: number
  /** Bytes of entries since the last snapshot that this replica knows of. */
  #bytes = 0
  /** The position of the last snapshot, and its size. */
  #last: Position = 0
  #size = 0
  #saving = false
  /** How often the replica began with a snapshot. */
  #loads = 0

  /** So many bytes of entries make a snapshot worth while; or as many as it has itself, if more. */
  constructor(log: Log, clock: Clock, every: number) {
    this.#log = log
    this.#clock = clock
    this.#every = every
  }

  /** The replica began with the snapshot of this position. */
  loaded(position: Position): void {
    this.#last = position
    this.#bytes = 0
    this.#loads++
  }

  grown(bytes: number): void {
    this.#bytes += bytes
  }

  /** A snapshot is worth while now. */
  soon(): void {
    this.#bytes = Math.max(this.#bytes, this.#every, this.#size)
  }

  /** To be called when entries were applied. The first member saves a snapshot, or else the next. */
  consider(machine: Machine, rank: number): void {
    if (this.#saving || this.#bytes < Math.max(this.#every, this.#size) * (1 + rank)) return
    this.#saving = true
    this.#bytes = 0
    // The log is as good as before if it fails, only longer, and the next snapshot comes.
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
    // It may be of entries that the log has lost.
    if (loads !== this.#loads) return
    await this.#log.saveSnapshot({ position, chunks: chunks.all() })
    const before = this.#last
    this.#last = position
    this.#size = chunks.size
    // Not up to this one: a replica that is a little behind need not begin again.
    if (before > 0) await this.#log.trim(before)
  }
}

/** Bytes in pieces that each fit into an entry. */
class Chunks {
  readonly #most: number
  readonly #full: Uint8Array[] = []
  #last = Buffer.alloc(0)
  #used = 0

  constructor(most: number) {
    this.#most = most
  }

  get size(): number {
    return this.#full.length * this.#most + this.#used
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
    if (this.#used === this.#most) {
      this.#full.push(this.#last)
      this.#last = Buffer.alloc(0)
      this.#used = 0
    }
    const size = Math.min(this.#most, Math.max(2 * this.#used, this.#used + needed, 4096))
    const grown = Buffer.allocUnsafe(size)
    grown.set(this.#last)
    this.#last = grown
  }
}
