import type { ByteReader, ByteWriter } from '../encoding/index.ts'
import type { Position } from '../log/index.ts'
import type { Entry } from './entry.ts'
import { Hash } from './hash.ts'

/** So many of the latest entries are known. A member that is further behind writes its entry again. */
const KEPT = 1024

/** What was so when the entry at a position had been applied. */
export interface Mark {
  /** A hash of all entries up to this one: two replicas with the same hash have read the same log. */
  readonly history: number
  /** The checksum of the state: two replicas with the same history must have the same one. */
  readonly checksum: number
}

/**
 * Which entries a replica has applied, as one hash, and what that hash was at the latest positions.
 *
 * Every entry names a position and the hash that its author had there. If the hash here was another
 * one, the author has read a log that had other entries: the log has lost its tail since, and the
 * author or this replica still has what was lost. Positions alone would not show that, because the
 * engine may give the lost ones out again.
 *
 * All of it is part of the state, and of snapshots: whether an entry counts must not depend on
 * when a replica has joined.
 */
export class History {
  readonly #hash = new Hash()
  readonly #marks = new Map<Position, Mark>()
  #oldest: Position = 0

  get value(): number {
    return this.#hash.value
  }

  /** The first position that is known still; 0 if there is none. */
  get oldest(): Position {
    return this.#oldest
  }

  at(position: Position): Mark | undefined {
    return this.#marks.get(position)
  }

  /** An entry was read; `undefined` if it is not one of ours. `checksum` is that of the state after it. */
  add(position: Position, entry: Entry | undefined, checksum: number): void {
    this.#hash.number(position)
    if (entry) {
      this.#hash.text(entry.member)
      this.#hash.number(entry.sequence)
      this.#hash.number(entry.asOf)
    }
    this.#marks.set(position, { history: this.#hash.value, checksum })
    if (this.#oldest === 0) this.#oldest = position
    if (this.#marks.size <= KEPT) return
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
