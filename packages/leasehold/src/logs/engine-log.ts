import {
  checkEntry,
  closedError,
  type Follower,
  type Following,
  type Log,
  type LogPromises,
  type Position,
  type Snapshot,
} from '../log/index.ts'
import { type Clock, isLeaseholdError, LeaseholdError, withTimeout } from '../port/index.ts'
import type { FaultOf } from './faults.ts'
import { Feed } from './feeds/feed.ts'
import type { LogSettings } from './options/options.ts'
import { type SnapshotParts, Snapshots } from './snapshots.ts'

/**
 * What each engine implements: a log without the parts that all logs share. Any method may reject
 * with an error of the engine's client; `faultOf` converts it.
 */
export interface LogEngine extends Pick<Log, 'promises' | 'append' | 'tail' | 'trim'> {
  /** Where the parts of snapshots are stored. */
  readonly parts: SnapshotParts
  /** Starts to deliver to the feed. A rejection ends the feed as interrupted. */
  follow(feed: Feed): Promise<void>
  close?(): void
}

/** Opens an engine's log. If that fails, nothing was changed, so the error is never unknown-outcome. */
export async function openLog(
  engine: string,
  { clock, timeout, random }: LogSettings,
  faultOf: FaultOf,
  open: () => Promise<LogEngine>,
): Promise<Log> {
  const late = `${engine} did not answer within ${timeout} ms: is it running, and can it be reached?`
  try {
    const opened = await inTime(open(), clock, timeout, late)
    return new EngineLog(opened, clock, new Snapshots(opened.parts, random), faultOf)
  } catch (error) {
    const fault = isLeaseholdError(error) ? error : faultOf(error)
    if (fault.code !== 'unknown-outcome') throw fault
    throw new LeaseholdError('timeout', fault.message, { cause: fault.cause ?? error })
  }
}

/** Checks entries, limits the time of every call, and closes followers with the log. */
class EngineLog implements Log {
  readonly promises: LogPromises
  readonly #engine: LogEngine
  readonly #clock: Clock
  readonly #snapshots: Snapshots
  readonly #faultOf: FaultOf
  readonly #feeds = new Set<Feed>()
  #isOpen = true

  constructor(engine: LogEngine, clock: Clock, snapshots: Snapshots, faultOf: FaultOf) {
    this.promises = engine.promises
    this.#engine = engine
    this.#clock = clock
    this.#snapshots = snapshots
    this.#faultOf = faultOf
  }

  append(entry: Uint8Array): Promise<Position> {
    return this.#call(async () => {
      checkEntry(entry, this.promises.entryBytes)
      return this.#engine.append(entry)
    })
  }

  follow(after: Position, follower: Follower): Following {
    if (!this.#isOpen) throw closedError()
    const feed = new Feed(after, follower, this.#faultOf)
    this.#feeds.add(feed)
    feed.onClose(() => this.#feeds.delete(feed))
    // In a later microtask, because the follower must not be called before this method returns.
    const start = async () => {
      await undefined
      if (feed.isOpen) await this.#engine.follow(feed)
    }
    this.#call(start).catch((error: unknown) => feed.interrupt(error))
    return feed
  }

  tail(): Promise<Position> {
    return this.#call(() => this.#engine.tail())
  }

  saveSnapshot(snapshot: Snapshot): Promise<void> {
    return this.#call(() => this.#snapshots.save(snapshot))
  }

  loadSnapshot(): Promise<Snapshot | undefined> {
    return this.#call(() => this.#snapshots.load())
  }

  trim(through: Position): Promise<void> {
    return this.#call(() => this.#engine.trim(through))
  }

  async close(): Promise<void> {
    if (!this.#isOpen) return
    this.#isOpen = false
    for (const feed of this.#feeds) feed.close()
    this.#engine.close?.()
  }

  async #call<Answer>(work: () => Promise<Answer>): Promise<Answer> {
    if (!this.#isOpen) throw closedError()
    const { engine, timeout } = this.promises
    const late = `${engine} did not answer within ${timeout} ms: the call may have been carried out, or may still be`
    try {
      return await inTime(work(), this.#clock, timeout, late)
    } catch (error) {
      throw isLeaseholdError(error) ? error : this.#faultOf(error)
    }
  }
}

/** The answer, or a rejection with `unknown-outcome` after this time. Keeps the process running. */
export function inTime<Answer>(
  answer: Promise<Answer>,
  clock: Clock,
  ms: number,
  message: string,
): Promise<Answer> {
  const late = () => new LeaseholdError('unknown-outcome', message)
  return withTimeout(clock, clock.now() + ms, answer, late)
}
