/**
 * The log port: what an engine must do so that leases can run on it.
 *
 * A log is one sequence of entries that several processes append to and follow. Each process runs
 * the same kernel on the same entries, so all of them reach the same state: an engine only has to
 * put entries in one order and keep them. It knows nothing of leases, and an entry is bytes to it.
 *
 * **Position.** Each entry has a position, a safe integer greater than 0. Positions only increase,
 * with or without gaps, also after everything was trimmed. Position 0 is before the first entry.
 *
 * **Three outcomes.** A call is *done*, *refused* (rejected with a `LeaseholdError` whose `outcome`
 * is `refused`: it certainly did not happen and never will), or *unknown* (rejected with anything
 * else: it may have happened, or may happen later). An append that was sent and not answered is
 * unknown. A caller repeats it with the same bytes; readers of the log skip the second copy.
 *
 * **Time.** Every call ends within `promises.timeout` milliseconds, whatever the engine does.
 *
 * **Overlap.** Calls may overlap, and several followers may be open at a time. No process needs more
 * than one append in flight: the caller puts everything it has into one entry.
 *
 * **Not promised.** A log does not retry, reconnect or cache. It tells the caller what failed, and
 * the caller calls again: the replica has the one copy of that code.
 */
export interface Log {
  /** What this engine promises. Does not change while the log is open. */
  readonly promises: LogPromises

  /**
   * Adds an entry at the end and returns its position. When it returns, the entry is as durable as
   * `promises.durability` says, and every `tail()` that starts later is at or after it.
   *
   * Refused: `invalid-argument` (empty), `limit-exceeded` (more than `promises.entryBytes`),
   * `closed`, or what the engine refuses: `forbidden`, `unauthenticated`, `storage-full`.
   */
  append(entry: Uint8Array): Promise<Position>

  /**
   * Delivers every entry after the position `after`, in order, each exactly once, without gaps,
   * and continues with new ones as they are appended, until it is closed or `ended` is called. What it
   * delivers is as durable as if its append had been acknowledged.
   * The follower is never called before `follow` has returned.
   */
  follow(after: Position, follower: Follower): Following

  /**
   * A position at or after every entry whose append was acknowledged, to any process, before this
   * call, and every entry that a follower was given. The position of the last entry, also if that
   * was trimmed; 0 if there never was one. If it is lower than before, the log has lost entries.
   *
   * If `promises.tailMayBeOld` is set, it may be the tail of a moment ago instead: then a caller that
   * must not miss anything appends an entry and waits for that one.
   */
  tail(): Promise<Position>

  /**
   * Keeps a snapshot of everything up to `snapshot.position`, in place of the one before. A snapshot
   * with a lower position than the kept one changes nothing. `loadSnapshot` returns a whole
   * snapshot at any time: the old one until the new one is complete.
   */
  saveSnapshot(snapshot: Snapshot): Promise<void>

  /** The newest snapshot, or `undefined` if none was saved. */
  loadSnapshot(): Promise<Snapshot | undefined>

  /**
   * Deletes entries with positions up to and including `through`. Trimming twice, or to a lower
   * position, does nothing. An engine may keep some of them for a while.
   */
  trim(through: Position): Promise<void>

  /** Ends all followers without a further call, and refuses later calls with `closed`. */
  close(): Promise<void>
}

/** The place of an entry in the log. */
export type Position = number

export interface LogEntry {
  readonly position: Position
  readonly bytes: Uint8Array
}

/** What a follower is called with. It must not throw. */
export interface Follower {
  /** The next entries, at least one. */
  entries(entries: readonly LogEntry[]): void
  /** The last call. */
  ended(cause: FollowEnd): void
}

export type FollowEnd =
  /** Entries after the wanted position were trimmed. Load the snapshot and follow from there. */
  | { readonly cause: 'trimmed' }
  /** The log ends before the wanted position: it lost entries, or it is another log. */
  | { readonly cause: 'ahead'; readonly tail: Position }
  /** The engine cannot be reached, or refused. Follow again after the last entry. */
  | { readonly cause: 'interrupted'; readonly error: unknown }

export interface Following {
  /** Stops. The follower is not called again. */
  close(): void
}

export interface Snapshot {
  /** The snapshot has the effect of every entry up to this one, and of none after it. */
  readonly position: Position
  /** Its bytes, in parts of at most `promises.entryBytes` each. */
  readonly chunks: readonly Uint8Array[]
}

export interface LogPromises {
  /** The engine's name, such as `etcd`. */
  readonly engine: string
  /** What an acknowledged entry survives. */
  readonly durability: 'process' | 'disk' | 'majority'
  /** Whether a failover of the engine may lose acknowledged entries. */
  readonly failoverLoses: boolean
  /**
   * Whether `tail()` may miss entries that were acknowledged before, because a server that was just
   * replaced may answer it. A replica then reads by appending an entry. Default: false.
   */
  readonly tailMayBeOld?: boolean | undefined
  /** The largest entry, in bytes. */
  readonly entryBytes: number
  /** Every call ends within this many milliseconds. */
  readonly timeout: number
  /** What else a user should know. */
  readonly notes: readonly string[]
}
