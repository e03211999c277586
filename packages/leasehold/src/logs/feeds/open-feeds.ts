import type { Position } from '../../log/index.ts'
import type { Feed } from './feed.ts'
import type { Poller } from './poller.ts'

/** The feeds of a polled log. They get the entries that this process appends without a read. */
export class OpenFeeds {
  readonly #pollers = new Map<Feed, Poller>()

  add(feed: Feed, poller: Poller): void {
    this.#pollers.set(feed, poller)
    feed.onClose(() => this.#pollers.delete(feed))
    poller.wake()
  }

  /** This process has appended an entry, right after the one at `before`. */
  appended(before: Position, position: Position, entry: Uint8Array): void {
    // The caller may reuse its buffer.
    const bytes = new Uint8Array(entry)
    for (const [feed, poller] of this.#pollers) {
      if (feed.after === before) feed.deliver([{ position, bytes }])
      else poller.wake(position)
    }
  }

  /** An append failed, but its entry may be in the log: read it. */
  wake(): void {
    for (const poller of this.#pollers.values()) poller.wake()
  }
}
