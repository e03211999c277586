import { RecordEncoder } from '../../encoding/index.ts'
import {
  type Clock,
  LeaseholdError,
  type Refusal,
  type Revision,
  type Timer,
} from '../../port/index.ts'
import type { Durability } from '../../runner/index.ts'
import type { Checkpoints } from './checkpoints.ts'
import { isFull } from './disk/disk.ts'
import type { LogWriter } from './log/log-writer.ts'
import type { SegmentSupply } from './log/segment-supply.ts'

/** The wait doubles without `backoff`'s random part: a log has one writer, so no retries collide. */
const RETRY_MS_MIN = 50
const RETRY_MS_MAX = 5000
/** How often the time is written if a lease has a maximum life and nothing else is written. */
const TIME_EVERY_MS = 30_000
/** If more bytes than this wait to be written, calls that would add to them are refused. */
const BACKLOG_MAX = 64 << 20
/** On a full disk, this much of the log is reserved for calls that free something. */
const RESERVE_MAX = 4 << 20
/** One release, or the end of one family of leases, hardly ever needs more than this. */
const SHRINK_ROOM = 1024

/**
 * Group commit. The changes that arrive during a write go together into the next write; there is
 * never more than one write at a time. The next write does not start at once when one ends. First
 * the callers that waited for it run, so that their next changes are included.
 */
export class FileDurability implements Durability {
  readonly changeSink: RecordEncoder
  readonly #clock: Clock
  // Set by `start`. Nothing is called before it.
  #log!: LogWriter
  #supply!: SegmentSupply
  #checkpoints!: Checkpoints
  #revision!: () => Revision
  #clockTimer!: Timer
  #onCommit!: () => void
  #closeFiles!: (isComplete: boolean) => Promise<void>
  /** The write in progress contains every change up to this revision. */
  #writingUpTo: Revision = 0
  /** The callers that wait for the write in progress, and for the one after it. */
  #current: Waiters | undefined
  #next: Waiters | undefined
  #writing = false
  #failure: unknown
  #retryMs = RETRY_MS_MIN
  #timer: Timer | undefined
  #writtenAt = 0
  #closing = false

  constructor(clock: Clock) {
    this.#clock = clock
    this.changeSink = new RecordEncoder(() => this.#schedule())
  }

  /** Sets the log to write to, after the log was read. */
  start(parts: {
    readonly log: LogWriter
    readonly supply: SegmentSupply
    readonly checkpoints: Checkpoints
    /** The revision of the last change that the sink received. */
    readonly revision: () => Revision
    readonly shift: number
    /** Called after each write. */
    readonly onCommit: () => void
    /** Called on close; `isComplete` if everything was written. */
    readonly closeFiles: (isComplete: boolean) => Promise<void>
  }): void {
    this.#log = parts.log
    this.#supply = parts.supply
    this.#checkpoints = parts.checkpoints
    this.#revision = parts.revision
    this.#onCommit = parts.onCommit
    this.#closeFiles = parts.closeFiles
    this.changeSink.shift = parts.shift
    this.#keepTime()
  }

  get pending(): boolean {
    return this.#writing || this.changeSink.length > 0
  }

  obstacle(kind: 'grow' | 'shrink'): Refusal | undefined {
    if (this.#failure !== undefined) {
      return isFull(this.#failure) ? full() : failed(this.#failure)
    }
    if (kind === 'grow' && this.changeSink.length > BACKLOG_MAX) {
      return {
        code: 'limit-exceeded',
        message: `${this.changeSink.length} bytes wait to be written; the maximum is ${BACKLOG_MAX}. The disk is too slow for this load: try again later`,
      }
    }
    const supply = this.#supply
    if (supply.fault === undefined) return undefined
    const room = this.#log.room - this.changeSink.length
    const needed = kind === 'shrink' ? SHRINK_ROOM : Math.min(supply.bytes / 2, RESERVE_MAX)
    if (room >= needed) return undefined
    // The disk may have space again: do not make the next caller wait a second for the retry.
    supply.want(supply.last + 1)
    return isFull(supply.fault) ? full() : failed(supply.fault)
  }

  durable(): Promise<void> {
    if (this.changeSink.length > 0) {
      this.#next ??= new Waiters()
      return this.#next.promise
    }
    if (!this.#writing) return Promise.resolve()
    this.#current ??= new Waiters()
    return this.#current.promise
  }

  /** Fulfilled when every change so far is durable, however many writes fail before that. */
  async eventually(signal: AbortSignal): Promise<void> {
    let stop = () => {}
    const aborted = new Promise<boolean>((resolve) => {
      stop = () => resolve(false)
    })
    signal.addEventListener('abort', stop)
    try {
      for (;;) {
        signal.throwIfAborted()
        // A store that is closed while its disk fails never becomes durable.
        const isDurable = await Promise.race([this.durable().then(isTrue, isFalse), aborted])
        if (isDurable) return
      }
    } finally {
      signal.removeEventListener('abort', stop)
    }
  }

  async close(): Promise<void> {
    this.#closing = true
    this.#timer?.cancel()
    this.#clockTimer.cancel()
    let isComplete = false
    try {
      while (this.pending) {
        const durable = this.durable()
        this.#retry()
        await durable
      }
      if (this.changeSink.hasFiniteLives) await this.#writeTime()
      isComplete = true
    } finally {
      await this.#closeFiles(isComplete)
    }
  }

  #schedule(): void {
    if (!this.#writing) this.#clock.defer(() => this.#begin())
  }

  #begin(): void {
    this.#current = this.#next
    this.#next = undefined
    this.#writing = true
    this.#writingUpTo = this.#revision()
    this.#log.begin(this.changeSink.take(), this.#time())
    this.#attempt()
  }

  #attempt(): void {
    this.#write().then(
      () => this.#done(),
      (error: unknown) => this.#failed(error),
    )
  }

  async #write(): Promise<void> {
    await this.#checkpoints.reserve(this.#writingUpTo)
    await this.#log.finish()
  }

  #done(): void {
    this.#checkpoints.committed(this.#log.position, this.#writingUpTo)
    const waiters = this.#current
    this.#current = undefined
    this.#writing = false
    this.#failure = undefined
    this.#retryMs = RETRY_MS_MIN
    this.#writtenAt = this.#clock.now()
    waiters?.fulfil()
    if (this.changeSink.length > 0) this.#schedule()
    this.#onCommit()
  }

  /** Keeps the bytes for the next try and rejects the calls that wait. */
  #failed(cause: unknown): void {
    this.#failure = cause
    const waiters = [this.#current, this.#next]
    this.#current = undefined
    this.#next = undefined
    if (!this.#closing) {
      const time = this.#clock.now() + this.#retryMs
      this.#retryMs = Math.min(this.#retryMs * 2, RETRY_MS_MAX)
      this.#timer = this.#clock.timer(time, () => this.#retry())
    }
    const { message } = failed(cause)
    for (const each of waiters) {
      each?.reject(new LeaseholdError('storage-failed', message, { cause }))
    }
  }

  /** Tries the failed write again, unless a try is in progress. */
  #retry(): void {
    if (this.#timer === undefined) return
    this.#timer.cancel()
    this.#timer = undefined
    this.#attempt()
  }

  #time(): number {
    return this.#clock.now() - this.changeSink.shift
  }

  /** Writes the time regularly, so that a crash does not extend a lease's maximum life by much. */
  #keepTime(): void {
    this.#clockTimer = this.#clock.timer(this.#clock.now() + TIME_EVERY_MS, () => {
      const idle = this.#clock.now() - this.#writtenAt >= TIME_EVERY_MS / 2
      if (this.changeSink.hasFiniteLives && idle && !this.pending) this.#begin()
      this.#keepTime()
    })
  }

  async #writeTime(): Promise<void> {
    this.#begin()
    await this.durable()
  }
}

const isTrue = () => true
const isFalse = () => false

class Waiters {
  readonly promise: Promise<void>
  fulfil!: () => void
  reject!: (error: LeaseholdError) => void

  constructor() {
    this.promise = new Promise((resolve, reject) => {
      this.fulfil = resolve
      this.reject = reject
    })
    // Nobody may be waiting any more: that is no unhandled rejection.
    this.promise.catch(() => {})
  }
}

function full(): Refusal {
  return {
    code: 'storage-full',
    message:
      'the disk has no space for the log to grow: free some space, and the store continues by itself. No confirmed change is lost; reads and releases still work',
  }
}

function failed(cause: unknown): Refusal {
  const what = cause instanceof Error ? cause.message : String(cause)
  return {
    code: 'storage-failed',
    message: `writing to the log failed (${what}): the store keeps trying, and refuses changes until a write succeeds`,
  }
}
