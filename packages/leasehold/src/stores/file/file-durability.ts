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
import { isFull } from './disk.ts'
import type { LogWriter } from './log-writer.ts'
import type { SegmentSupply } from './segment-supply.ts'

const RETRY_MS_MIN = 50
const RETRY_MS_MAX = 5000
/** How often the time is written down, where a lease's life has an end and nothing else is written. */
const TIME_EVERY_MS = 30_000
/** More than this told but not written yet, and what would add to it is refused. */
const BACKLOG_MAX = 64 << 20
/** On a full disk the last of the log is kept for what frees something. */
const RESERVE_MAX = 4 << 20
/** One release, or the end of one family of leases, is hardly ever more than this. */
const SHRINK_ROOM = 1024

/**
 * Group commit. What the journal is told while a write is under way goes into the next one, all of
 * it at once; there is never more than one under way. The next is not begun at once when one ends,
 * but after those who waited for it have had their turn, so that what they do next comes along.
 */
export class FileDurability implements Durability {
  readonly changeSink: RecordEncoder
  readonly #clock: Clock
  // Set by `start`. Before it nothing is told and nothing is asked.
  #log!: LogWriter
  #supply!: SegmentSupply
  #checkpoints!: Checkpoints
  #revision!: () => Revision
  #clockTimer!: Timer
  #onCommit!: () => void
  #letGo!: (isComplete: boolean) => Promise<void>
  /** The revision up to which the write under way has every change. */
  #writingUpTo: Revision = 0
  /** Those who wait for the write under way, and for the one after it. */
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

  /** Gives it the log to write to, once that has been read. */
  start(parts: {
    readonly log: LogWriter
    readonly supply: SegmentSupply
    readonly checkpoints: Checkpoints
    /** The revision of the last change that the journal was told. */
    readonly revision: () => Revision
    readonly shift: number
    /** Called after each write. */
    readonly onCommit: () => void
    /** Called when it is closed: `isComplete` if everything was written. */
    readonly letGo: (isComplete: boolean) => Promise<void>
  }): void {
    this.#log = parts.log
    this.#supply = parts.supply
    this.#checkpoints = parts.checkpoints
    this.#revision = parts.revision
    this.#onCommit = parts.onCommit
    this.#letGo = parts.letGo
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
        message: `${this.changeSink.length} bytes wait to be written, and at most ${BACKLOG_MAX} may: the disk is too slow for this load, try again later`,
      }
    }
    const supply = this.#supply
    if (supply.fault === undefined) return undefined
    const room = this.#log.room - this.changeSink.length
    const needed = kind === 'shrink' ? SHRINK_ROOM : Math.min(supply.bytes / 2, RESERVE_MAX)
    if (room >= needed) return undefined
    // Space may have come back a moment ago: whoever asks next should not have to wait a second.
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

  /** Fulfilled, however often writing fails before, when all that was told so far is durable. */
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
      await this.#letGo(isComplete)
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

  /** The bytes stay where they are, to be written again; those who wait are told. */
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

  /** Tries again what failed, if it is not being tried. */
  #retry(): void {
    if (this.#timer === undefined) return
    this.#timer.cancel()
    this.#timer = undefined
    this.#attempt()
  }

  #time(): number {
    return this.#clock.now() - this.changeSink.shift
  }

  /** Writes the time down now and then, so that a crash does not prolong a lease's life by much. */
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
    // Whoever asked may have lost interest: that is no unhandled rejection.
    this.promise.catch(() => {})
  }
}

function full(): Refusal {
  return {
    code: 'storage-full',
    message:
      'the disk has no space for the log to grow: free some, and the store goes on by itself. Nothing that was answered is lost, and what is there can be read and released',
  }
}

function failed(cause: unknown): Refusal {
  const what = cause instanceof Error ? cause.message : String(cause)
  return {
    code: 'storage-failed',
    message: `writing to the log failed (${what}): the store keeps trying, and refuses changes until it succeeds`,
  }
}
