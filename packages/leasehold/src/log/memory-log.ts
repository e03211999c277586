import { checkNames, knownNames } from '../port/index.ts'
import type { Follower, Following, Log, LogEntry, LogPromises, Position, Snapshot } from './log.ts'
import { checkEntry, closedError } from './refusals.ts'

export interface MemoryLogOptions {
  /** The largest entry, in bytes. Default: 1 MiB. */
  readonly entryBytes?: number | undefined
}

const MEMORY_LOG_OPTIONS = knownNames<MemoryLogOptions>({ entryBytes: true })

/**
 * A log in the memory of this process, for tests and experiments. Several replicas share one log:
 * each opens its own handle with `open()`. Closing a handle does not remove the entries.
 */
export class MemoryLog {
  readonly #entryBytes: number
  readonly #handles = new Set<Handle>()
  #entries: LogEntry[] = []
  #last: Position = 0
  #trimmed: Position = 0
  #snapshot: Snapshot | undefined

  constructor(options: MemoryLogOptions = {}) {
    checkNames('MemoryLog', options, MEMORY_LOG_OPTIONS)
    this.#entryBytes = options.entryBytes ?? 1024 * 1024
  }

  open(): Log {
    const handle: Handle = new Handle(memoryPromises(this.#entryBytes), {
      append: (bytes) => this.#append(bytes),
      after: (position) => this.#after(position),
      tail: () => this.#last,
      save: (snapshot) => this.#save(snapshot),
      load: () => this.#snapshot,
      trim: (through) => this.#trim(through),
      closed: () => this.#handles.delete(handle),
    })
    this.#handles.add(handle)
    return handle
  }

  /**
   * For tests: loses the entries after this position, like a failover that loses them or a restored
   * backup. The snapshot stays if it is not newer, or if `keepSnapshot` is true.
   */
  loseAfter(position: Position, keepSnapshot = false): void {
    this.#entries = this.#entries.filter((entry) => entry.position <= position)
    this.#last = Math.min(this.#last, position)
    this.#trimmed = Math.min(this.#trimmed, this.#last)
    const isNewer = this.#snapshot !== undefined && this.#snapshot.position > position
    if (isNewer && !keepSnapshot) this.#snapshot = undefined
  }

  #append(bytes: Uint8Array): Position {
    // The caller may reuse its buffer as soon as the call has returned.
    const entry = { position: ++this.#last, bytes: bytes.slice() }
    this.#entries.push(entry)
    for (const handle of this.#handles) handle.deliver()
    return entry.position
  }

  #after(position: Position): readonly LogEntry[] | 'trimmed' | 'ahead' {
    if (position > this.#last) return 'ahead'
    if (position < this.#trimmed) return 'trimmed'
    return this.#entries.slice(this.#entries.length - (this.#last - position))
  }

  #save(snapshot: Snapshot): void {
    if (this.#snapshot !== undefined && this.#snapshot.position >= snapshot.position) return
    const chunks = snapshot.chunks.map((chunk) => chunk.slice())
    this.#snapshot = { position: snapshot.position, chunks }
  }

  #trim(through: Position): void {
    this.#trimmed = Math.max(this.#trimmed, Math.min(through, this.#last))
    this.#entries = this.#entries.filter(({ position }) => position > this.#trimmed)
  }
}

function memoryPromises(entryBytes: number): LogPromises {
  return {
    engine: 'memory',
    durability: 'process',
    failoverLoses: false,
    entryBytes,
    timeout: 1000,
    notes: ['The entries are gone when the process ends.'],
  }
}

interface Shared {
  append(bytes: Uint8Array): Position
  after(position: Position): readonly LogEntry[] | 'trimmed' | 'ahead'
  tail(): Position
  save(snapshot: Snapshot): void
  load(): Snapshot | undefined
  trim(through: Position): void
  closed(): void
}

/** One replica's handle. Answers and deliveries come in a later microtask, never at once. */
class Handle implements Log {
  readonly promises: LogPromises
  readonly #shared: Shared
  readonly #readers = new Set<Reader>()
  #open = true

  constructor(promises: LogPromises, shared: Shared) {
    this.promises = promises
    this.#shared = shared
  }

  append(entry: Uint8Array): Promise<Position> {
    return this.#call(() => {
      checkEntry(entry, this.promises.entryBytes)
      return this.#shared.append(entry)
    })
  }

  follow(after: Position, follower: Follower): Following {
    if (!this.#open) throw closedError()
    const reader = new Reader(this.#shared, after, follower, () => this.#readers.delete(reader))
    this.#readers.add(reader)
    reader.deliver()
    return reader
  }

  tail(): Promise<Position> {
    return this.#call(() => this.#shared.tail())
  }

  saveSnapshot(snapshot: Snapshot): Promise<void> {
    return this.#call(() => this.#shared.save(snapshot))
  }

  loadSnapshot(): Promise<Snapshot | undefined> {
    return this.#call(() => this.#shared.load())
  }

  trim(through: Position): Promise<void> {
    return this.#call(() => this.#shared.trim(through))
  }

  async close(): Promise<void> {
    this.#open = false
    for (const reader of [...this.#readers]) reader.close()
    this.#shared.closed()
  }

  deliver(): void {
    for (const reader of this.#readers) reader.deliver()
  }

  async #call<Answer>(run: () => Answer): Promise<Answer> {
    if (!this.#open) throw closedError()
    return run()
  }
}

class Reader implements Following {
  readonly #shared: Shared
  readonly #follower: Follower
  readonly #onClose: () => void
  #after: Position
  #open = true
  #scheduled = false

  constructor(shared: Shared, after: Position, follower: Follower, onClose: () => void) {
    this.#shared = shared
    this.#after = after
    this.#follower = follower
    this.#onClose = onClose
  }

  /** Delivers soon, together with all entries that arrive until then. */
  deliver(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    queueMicrotask(() => {
      this.#scheduled = false
      if (this.#open) this.#deliverNow()
    })
  }

  close(): void {
    this.#open = false
    this.#onClose()
  }

  #deliverNow(): void {
    const entries = this.#shared.after(this.#after)
    if (typeof entries === 'string') {
      this.close()
      const tail = this.#shared.tail()
      this.#follower.ended(entries === 'ahead' ? { cause: 'ahead', tail } : { cause: 'trimmed' })
    } else if (entries.length > 0) {
      this.#after = entries[entries.length - 1]!.position
      this.#follower.entries(entries)
    }
  }
}
