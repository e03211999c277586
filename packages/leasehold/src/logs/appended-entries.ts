import type { Position } from '../log/index.ts'

/** So many entries are kept at most until they have been followed. */
const MAX = 256

/** The entries that this process has appended: its followers do not have to read them. */
export class AppendedEntries {
  readonly #entries = new Map<Position, Uint8Array>()
  readonly #awaited = new Map<Position, (entry: Uint8Array) => void>()

  add(position: Position, entry: Uint8Array): void {
    // The caller may write to its buffer again.
    const copy = entry.slice()
    const deliver = this.#awaited.get(position)
    if (deliver) deliver(copy)
    else this.#entries.set(position, copy)
    if (this.#entries.size > MAX) this.#entries.delete(this.#entries.keys().next().value!)
  }

  /** The entry at a position: an own one, or what `read` finds if that comes first. */
  async take(position: Position, read: () => Promise<Uint8Array>): Promise<Uint8Array> {
    const own = this.#entries.get(position)
    this.#entries.delete(position)
    if (own) return own
    // A follower may hear of an entry before its append is answered.
    const appended = new Promise<Uint8Array>((resolve) => this.#awaited.set(position, resolve))
    try {
      return await Promise.race([appended, read()])
    } finally {
      this.#awaited.delete(position)
    }
  }
}
