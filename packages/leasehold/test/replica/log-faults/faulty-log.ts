import type {
  Follower,
  Following,
  Log,
  LogPromises,
  Position,
  Snapshot,
} from '../../../src/log/index.ts'
import { ERRORS, type ErrorCode, LeaseholdError } from '../../../src/port/index.ts'

/** What goes wrong with the next append. */
export type AppendFault = 'lost' | 'answer lost' | 'late' | 'twice' | ErrorCode

/** A log whose appends fail as configured, and whose followers can be interrupted. */
export class FaultyLog implements Log {
  promises: LogPromises
  readonly faults: AppendFault[] = []
  /** Interrupts every new follower at once. */
  isCut = false
  /** Reads of the tail and the snapshot fail with this error, or are never answered. */
  reads: Error | 'never answered' | undefined
  /** What `tail` returns, like a replaced server that does not know it yet. */
  oldTail: Position | undefined
  /** How many entries were appended here. */
  appended = 0
  /** Appends that have not reached the log yet. */
  readonly #late: Uint8Array[] = []
  #held: (() => void)[] | undefined
  readonly #log: Log
  readonly #followers = new Set<{ follower: Follower; following: Following }>()

  constructor(log: Log) {
    this.#log = log
    this.promises = log.promises
  }

  async append(entry: Uint8Array): Promise<Position> {
    this.appended++
    const fault = this.faults.shift()
    if (fault === 'late') this.#late.push(entry)
    if (fault === 'lost' || fault === 'late') throw new Error('the connection broke')
    if (fault !== undefined && fault in ERRORS) {
      throw new LeaseholdError(fault as ErrorCode, `the engine says ${fault}`)
    }
    const position = await this.#log.append(entry)
    if (fault === 'twice') return this.#log.append(entry)
    if (fault === 'answer lost') throw new Error('the connection broke')
    return position
  }

  /** Lets late appends reach the log now. */
  async arrive(): Promise<void> {
    for (const entry of this.#late.splice(0)) await this.#log.append(entry)
  }

  follow(after: Position, follower: Follower): Following {
    if (this.isCut) {
      queueMicrotask(() => follower.ended({ cause: 'interrupted', error: new Error('cut') }))
      return { close() {} }
    }
    const following = this.#log.follow(after, {
      entries: (entries) => {
        if (this.#held) this.#held.push(() => follower.entries(entries))
        else follower.entries(entries)
      },
      ended: (end) => follower.ended(end),
    })
    const open = { follower, following }
    this.#followers.add(open)
    return {
      close: () => {
        this.#followers.delete(open)
        following.close()
      },
    }
  }

  /** Holds entries back from followers until `release`. */
  hold(): void {
    this.#held = []
  }

  release(): void {
    const held = this.#held ?? []
    this.#held = undefined
    for (const deliver of held) deliver()
  }

  /** Interrupts all followers, as if the engine were unreachable. */
  interrupt(): void {
    for (const { follower, following } of this.#followers) {
      following.close()
      follower.ended({ cause: 'interrupted', error: new Error('the connection broke') })
    }
    this.#followers.clear()
  }

  async tail(): Promise<Position> {
    await this.#read()
    return this.oldTail ?? this.#log.tail()
  }

  async #read(): Promise<void> {
    if (this.reads instanceof Error) throw this.reads
    if (this.reads) await new Promise(() => {})
  }

  saveSnapshot(snapshot: Snapshot): Promise<void> {
    return this.#log.saveSnapshot(snapshot)
  }

  async loadSnapshot(): Promise<Snapshot | undefined> {
    await this.#read()
    return this.#log.loadSnapshot()
  }

  trim(through: Position): Promise<void> {
    return this.#log.trim(through)
  }

  close(): Promise<void> {
    return this.#log.close()
  }
}
