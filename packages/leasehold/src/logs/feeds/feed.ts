import type { FollowEnd, Follower, Following, LogEntry, Position } from '../../log/index.ts'
import { isLeaseholdError } from '../../port/index.ts'
import type { FaultOf } from '../faults.ts'

/** One open follower, as an engine sees it. It receives entries, and closes its resources at the end. */
export class Feed implements Following {
  readonly #follower: Follower
  readonly #faultOf: FaultOf
  readonly #releases: (() => void)[] = []
  #after: Position
  #isOpen = true

  constructor(after: Position, follower: Follower, faultOf: FaultOf) {
    this.#after = after
    this.#follower = follower
    this.#faultOf = faultOf
  }

  /** The position of the last entry that was delivered. */
  get after(): Position {
    return this.#after
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  deliver(entries: readonly LogEntry[]): void {
    if (!this.#isOpen || entries.length === 0) return
    this.#after = entries[entries.length - 1]!.position
    this.#follower.entries(entries)
  }

  /** Ends the feed, and returns false, if its next entry is not between `trimmed` and `tail`. */
  continuesIn(trimmed: Position, tail: Position): boolean {
    if (this.#after > tail) this.end({ cause: 'ahead', tail })
    else if (this.#after < trimmed) this.end({ cause: 'trimmed' })
    return this.#isOpen
  }

  /** Ends the feed with an error, which may be one of the engine's client. */
  interrupt(error: unknown): void {
    const fault = isLeaseholdError(error) ? error : this.#faultOf(error)
    this.end({ cause: 'interrupted', error: fault })
  }

  end(cause: FollowEnd): void {
    if (!this.#isOpen) return
    this.close()
    this.#follower.ended(cause)
  }

  close(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    for (const release of this.#releases) release()
  }

  /** Calls `release` when the feed closes, or now if it has closed already. */
  onClose(release: () => void): void {
    if (this.#isOpen) this.#releases.push(release)
    else release()
  }
}
