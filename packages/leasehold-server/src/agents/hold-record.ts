import type { Key, LockKey } from 'leasehold'
import { formatDuration, isLeaseholdError, type Token } from 'leasehold/port'
import { type HoldNote, isoTime, noteText } from './hold-note.ts'
import type { HoldView } from './hold-requests.ts'

/** What a lock and a permit of a pool have in common. */
export interface LockOrPermit {
  readonly keys: readonly Key[]
  readonly claimToken: Token
  readonly signal: AbortSignal
  /** For a permit: what was taken. */
  readonly resources?: readonly string[]
  release(): Promise<void>
}

export type RecordState = 'waiting' | 'held' | 'lost' | 'released'

export interface RecordSpec {
  readonly handle: string
  readonly note: HoldNote
  /** The claims that it asks for; none if it asks a pool. */
  readonly claims: readonly LockKey[]
  /** The name of the pool that it asks. */
  readonly pool?: string | undefined
  /** The name of what must be done once, and is done under this hold. */
  readonly once?: string | undefined
  /** The keys that its agent named: tasks that can be marked as done. */
  readonly keys?: readonly string[]
  readonly askedAt: number
}

/**
 * One hold of an agent, from asking to its end. The handle is its identity: several subagents share a
 * connection, so neither the connection nor the name of an agent says whose hold it is.
 */
export class HoldRecord implements RecordSpec {
  readonly handle: string
  readonly note: HoldNote
  readonly claims: readonly LockKey[]
  readonly pool: string | undefined
  readonly once: string | undefined
  readonly keys: readonly string[]
  readonly askedAt: number
  /** Ends the wait. */
  readonly abandon = new AbortController()
  state: RecordState = 'waiting'
  heldAt: number | undefined = undefined
  endedAt: number | undefined = undefined
  /** Why it was lost, for its agent. */
  why: string | undefined = undefined
  /** Its agent has been told the current state under this handle. */
  isReported = false
  lockOrPermit: LockOrPermit | undefined = undefined
  /** Fulfilled when it no longer waits. */
  settled: Promise<void> = Promise.resolve()

  constructor({ handle, note, claims, pool, once, keys = [], askedAt }: RecordSpec) {
    this.handle = handle
    this.note = note
    this.claims = claims
    this.pool = pool
    this.once = once
    this.keys = keys
    this.askedAt = askedAt
  }

  /** Follows an acquisition to its end. `now` reads the clock; `changed` is called at each change. */
  follow(acquiring: Promise<LockOrPermit>, now: () => number, changed: () => void): void {
    this.settled = acquiring.then(
      (lockOrPermit) => {
        this.hold(lockOrPermit, now)
        lockOrPermit.signal.addEventListener('abort', () => {
          if (this.state !== 'held') return
          this.lose(lossText(lockOrPermit.signal.reason), now())
          changed()
        })
        changed()
      },
      (error) => {
        if (this.state === 'waiting') this.lose(lossText(error), now())
        changed()
      },
    )
  }

  hold(lockOrPermit: LockOrPermit, now: () => number): void {
    this.lockOrPermit = lockOrPermit
    if (this.state !== 'waiting') {
      // It was given up while the grant was on its way.
      void lockOrPermit.release().catch(() => {})
      return
    }
    this.state = 'held'
    this.heldAt = now()
    this.isReported = false
    if (lockOrPermit.signal.aborted) this.lose(lossText(lockOrPermit.signal.reason), now())
  }

  lose(why: string, at: number): void {
    this.state = 'lost'
    this.why = why
    this.endedAt = at
    this.isReported = false
  }

  /** Releases it, or leaves the queue. */
  async release(at: number): Promise<void> {
    const { state } = this
    if (state !== 'held' && state !== 'waiting') return
    this.state = 'released'
    this.endedAt = at
    if (state === 'waiting') this.abandon.abort()
    await this.lockOrPermit?.release()
  }

  get isOpen(): boolean {
    return this.state === 'held' || this.state === 'waiting'
  }

  get value(): string {
    return noteText(this.note)
  }

  /** As its agent sees it. */
  get view(): HoldView {
    const { handle, state, note, heldAt, askedAt, lockOrPermit, why, endedAt } = this
    const since = state === 'waiting' ? askedAt : (endedAt ?? heldAt ?? askedAt)
    return {
      hold: handle,
      state,
      agent: note.agent,
      purpose: note.purpose,
      for: note.for,
      since: isoTime(since),
      ...(state === 'held' && { token: lockOrPermit!.claimToken, until: isoTime(this.latest) }),
      ...(lockOrPermit?.resources && { resources: lockOrPermit.resources }),
      ...(why !== undefined && { why }),
    }
  }

  /** The latest end of what it holds. */
  get latest(): number {
    const { max = Infinity } = this.note
    return (this.heldAt ?? Infinity) + max
  }
}

function lossText(error: unknown): string {
  if (!isLeaseholdError(error)) return String(error)
  if (error.code !== 'lost') return error.message
  const by = error.by === undefined ? '' : ` by ${error.by}`
  const why = error.why === undefined ? '' : `: ${error.why}`
  switch (error.reason) {
    case 'revoked':
      return `it was taken away${by}${why}`
    case 'broken':
      return `it was broken${by}${why}`
    case 'unreachable':
      return 'the lease server could not be reached in time, so others may hold it now'
    default:
      return error.message
  }
}

export function maximumText(max: number): string {
  return `it was held for ${formatDuration(max)}, the maximum`
}
