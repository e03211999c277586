import type { LogEntry, LogPromises, Position } from '../../log/index.ts'
import { AppendedEntries } from '../appended-entries.ts'
import type { LogEngine } from '../engine-log.ts'
import type { Feed } from '../feeds/feed.ts'
import type { SnapshotParts } from '../snapshots.ts'
import type { Agents } from './client/index.ts'

/** Entries are deleted by the segment, with one request. */
const SEGMENT = 1000
/** How many entries one read returns. Consul allows 64 operations in a transaction. */
const PAGE = 64
/** How long a follower's query waits. A frozen agent is noticed after this time and the timeout. */
const WAIT_MS = 2000
/** No append meets so many others in a row, unless something else is wrong. */
const ATTEMPTS = 1000

/** The position of the last entry, and Consul's index of the key that has it. */
interface Last {
  readonly position: Position
  readonly index: number
}

/**
 * A log in Consul's key-value store. Entries are numbered without gaps:
 *
 * - `last`: the position of the last entry.
 * - `entry/SEGMENT/POSITION`: an entry. It is set in one transaction with `last`, on the condition
 *   that `last` has not changed.
 * - `trimmed`: the position through which entries may have been deleted.
 * - `part/NAME`: a part of a snapshot.
 */
export class ConsulLog implements LogEngine {
  readonly promises: LogPromises
  readonly parts: SnapshotParts
  readonly #agents: Agents
  readonly #prefix: string
  readonly #own = new AppendedEntries()
  #last: Last | undefined
  #appending: Promise<unknown> = Promise.resolve()

  constructor(agents: Agents, prefix: string, promises: LogPromises) {
    this.#agents = agents
    this.#prefix = prefix
    this.promises = promises
    this.parts = partsIn(agents, `${prefix}part/`)
  }

  /** One at a time: appends of this process must not compete with each other. */
  append(entry: Uint8Array): Promise<Position> {
    const appended = this.#appending.then(() => this.#append(entry))
    this.#appending = appended.catch(() => {})
    return appended
  }

  async #append(entry: Uint8Array): Promise<Position> {
    const Value = Buffer.from(entry).toString('base64')
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const last = this.#last ?? (await this.#readLast())
      const position = last.position + 1
      const done = await this.#agents.transact([
        { Verb: 'cas', Key: this.#lastKey, Value: base64(position), Index: last.index },
        { Verb: 'set', Key: this.#entryKey(position), Value },
      ])
      if (done) {
        this.#last = { position, index: done[0]!.index }
        this.#own.add(position, entry)
        return position
      }
      // Another process was first.
      await this.#readLast()
    }
    throw new Error(`append: ${ATTEMPTS} other appends were first`)
  }

  async follow(feed: Feed): Promise<void> {
    const [last, trimmed] = await Promise.all([this.#readLast(), this.#trimmed()])
    if (!feed.continuesIn(trimmed, last.position)) return
    this.#deliver(feed, last).catch((error: unknown) => feed.interrupt(error))
  }

  async tail(): Promise<Position> {
    return (await this.#readLast()).position
  }

  async trim(through: Position): Promise<void> {
    const [{ pair }, { position }] = await Promise.all([
      this.#agents.read(`${this.#prefix}trimmed`),
      this.#readLast(),
    ])
    const before = Number(pair?.value ?? 0)
    const most = Math.min(through, position)
    if (most <= before) return
    const operation = { Verb: 'cas', Key: `${this.#prefix}trimmed`, Value: base64(most) } as const
    // If another process trims at the same time, the next trim deletes the entries.
    if (!(await this.#agents.transact([{ ...operation, Index: pair?.index ?? 0 }]))) return
    const end = segmentOf(most + 1)
    for (let segment = segmentOf(before + 1); segment < end; segment++) {
      await this.#agents.delete(`${this.#prefix}entry/${segment}/`, '?recurse')
    }
  }

  close(): void {
    this.#agents.close()
  }

  /** Delivers entries and waits for the next ones, until the feed closes. */
  async #deliver(feed: Feed, from: Last): Promise<void> {
    let { position, index } = from
    while (feed.isOpen) {
      while (feed.isOpen && feed.after < position) {
        const entries = await this.#entriesAfter(feed.after, position)
        if (entries === undefined) return feed.end({ cause: 'trimmed' })
        feed.deliver(entries)
      }
      if (!feed.isOpen) return
      const since = { index, waitMs: WAIT_MS }
      const next = await this.#agents.read(this.#lastKey, since)
      // A restored backup has a lower index: then wait from the beginning.
      index = next.index < index ? 0 : next.index
      position = Number(next.pair?.value ?? 0)
      if (position < feed.after) return feed.end({ cause: 'ahead', tail: position })
    }
  }

  /** The next entries, at least one, or `undefined` if they were deleted. */
  async #entriesAfter(after: Position, last: Position): Promise<LogEntry[] | undefined> {
    const length = Math.min(PAGE, last - after)
    const positions = Array.from({ length }, (_, at) => after + at + 1)
    const read = async () => {
      const found = await this.#agents.transact(
        positions.map((position) => ({ Verb: 'get', Key: this.#entryKey(position) })),
      )
      if (found === undefined) throw DELETED
      return found
    }
    try {
      if (length === 1) {
        const bytes = await this.#own.take(positions[0]!, async () => (await read())[0]!.value)
        return [{ position: positions[0]!, bytes: new Uint8Array(bytes) }]
      }
      const found = await read()
      return found.map(({ value }, at) => {
        return { position: positions[at]!, bytes: new Uint8Array(value) }
      })
    } catch (error) {
      if (error === DELETED) return undefined
      throw error
    }
  }

  async #readLast(): Promise<Last> {
    const { pair } = await this.#agents.read(this.#lastKey)
    this.#last = { position: Number(pair?.value ?? 0), index: pair?.index ?? 0 }
    return this.#last
  }

  async #trimmed(): Promise<Position> {
    const { pair } = await this.#agents.read(`${this.#prefix}trimmed`)
    return Number(pair?.value ?? 0)
  }

  get #lastKey(): string {
    return `${this.#prefix}last`
  }

  #entryKey(position: Position): string {
    return `${this.#prefix}entry/${segmentOf(position)}/${position}`
  }
}

const DELETED = new Error('an entry was deleted')

function segmentOf(position: Position): number {
  return Math.floor(position / SEGMENT)
}

function base64(number: number): string {
  return Buffer.from(`${number}`).toString('base64')
}

function partsIn(agents: Agents, folder: string): SnapshotParts {
  return {
    names: async () => (await agents.keys(folder)).map((key) => key.slice(folder.length)),
    put: (name, bytes) => agents.put(`${folder}${name}`, bytes),
    get: async (name) => {
      const { pair } = await agents.read(`${folder}${name}`)
      return pair && new Uint8Array(pair.value)
    },
    remove: (name) => agents.delete(`${folder}${name}`),
  }
}
