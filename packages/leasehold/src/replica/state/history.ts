import type { ByteReader, ByteWriter } from '../../encoding/index.ts'
import type { Position } from '../../log/index.ts'
import type { Entry } from '../entry.ts'
import { Hash } from './hash.ts'

/** How many of the latest entries are kept. A member that is further behind writes its entry again. */
const MARKS_MAX = 1024

/** The hashes of a replica right after it applied the entry at one position. */
export interface Mark {
  /** A hash of all entries up to this one. Replicas with the same hash have read the same log. */
  readonly history: number
  /** The checksum of the state. Replicas with the same history must have the same checksum. */
  readonly checksum: number
}

/**
 * One hash of all entries that a replica has applied, and its value at the latest positions.
 *
 * Every entry names a position and its author's hash at that position. If this replica's hash there
 * differs, the author has read other entries: the log has lost its tail, and either the author or this
 * replica still has the lost part. Positions alone would not show this, because the engine may assign
 * the lost positions again.
 *
 * The history is part of the state and of snapshots, because whether an entry counts must not depend
 * on when a replica joined.
 */
export class History {
  readonly #hash = new Hash()
  readonly #marks = new Map<Position, Mark>()
  #oldest: Position = 0

  get value(): number {
    return this.#hash.value
  }

  /** The first position that is still kept; 0 if there is none. */
  get oldest(): Position {
    return this.#oldest
  }

  at(position: Position): Mark | undefined {
    return this.#marks.get(position)
  }

  /** Adds an entry; `undefined` if Leasehold did not write it. `checksum` is of the state after it. */
  add(position: Position, entry: Entry | undefined, checksum: number): void {
    this.#hash.number(position)
    if (entry) {
      this.#hash.string(entry.member)
      this.#hash.number(entry.sequence)
      this.#hash.number(entry.asOf)
    }
    this.#marks.set(position, { history: this.#hash.value, checksum })
    if (this.#oldest === 0) this.#oldest = position
    if (this.#marks.size <= MARKS_MAX) return
    const [oldest, next] = this.#marks.keys()
    this.#marks.delete(oldest!)
    this.#oldest = next!
  }

  put(bytes: ByteWriter): void {
    bytes.integer(this.#marks.size)
    let before = 0
    for (const [position, { history, checksum }] of this.#marks) {
      bytes.integer(position - before)
      bytes.integer(history)
      bytes.integer(checksum)
      before = position
    }
  }

  take(bytes: ByteReader): void {
    let position = 0
    for (let left = bytes.integer(); left > 0; left--) {
      position += bytes.integer()
      const mark = { history: bytes.integer(), checksum: bytes.integer() }
      if (this.#oldest === 0) this.#oldest = position
      this.#marks.set(position, mark)
      this.#hash.value = mark.history
    }
  }
}
