import type { Position } from '../log/index.ts'

/** The most entries that are kept until followers take them. */
const MAX = 256

/** The entries that this process has appended, so that its followers need not read them. */
export class AppendedEntries {
  readonly #entries = new Map<Position, Uint8Array>()
  readonly #awaited = new Map<Position, (entry: Uint8Array) => void>()

  add(position: Position, entry: Uint8Array): void {
    // The caller may reuse its buffer.
    const copy = entry.slice()
    const deliver = this.#awaited.get(position)
    if (deliver) deliver(copy)
    else this.#entries.set(position, copy)
    if (this.#entries.size > MAX) this.#entries.delete(this.#entries.keys().next().value!)
  }

  /** The entry at a position: one that this process appended, or the result of `read` if that is first. */
  async take(position: Position, read: () => Promise<Uint8Array>): Promise<Uint8Array> {
    const own = this.#entries.get(position)
    this.#entries.delete(position)
    if (own) return own
    // A follower may learn of an entry before its append is answered.
    const appended = new Promise<Uint8Array>((resolve) => this.#awaited.set(position, resolve))
    try {
      return await Promise.race([appended, read()])
    } finally {
      this.#awaited.delete(position)
    }
  }
}
