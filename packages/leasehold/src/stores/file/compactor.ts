import type { Clock } from '../../port/index.ts'
import type { Checkpoints } from './checkpoints.ts'
import type { Disk } from './disk.ts'
import type { FileDurability } from './file-durability.ts'
import type { LogWriter } from './log-writer.ts'
import { removeOutdated } from './recovery.ts'
import type { SegmentSupply } from './segment-supply.ts'
import { type Described, writeSnapshot } from './snapshot-writer.ts'

/** After a snapshot that failed, the next is not tried before this. */
const RETRY_MS = 5000

export interface CompactorOptions {
  readonly storeId: string
  /** So much log makes a snapshot worth while; or twice the last snapshot, if that is more. */
  readonly snapshotBytes: number
  readonly shift: number
}

/** What is known of the last snapshot. */
export interface LastSnapshot {
  readonly number: number
  readonly bytes: number
  /** The segment in which the log begins. */
  readonly segment: number
  /** How many bytes of log there are after it. */
  readonly logBytes: number
}

/** Keeps the log short: writes a snapshot when it has grown enough, and removes what is before. */
export class Compactor {
  readonly #disk: Disk
  readonly #clock: Clock
  readonly #kernel: Described
  readonly #log: LogWriter
  readonly #supply: SegmentSupply
  readonly #durability: FileDurability
  readonly #checkpoints: Checkpoints
  readonly #options: CompactorOptions
  #last: LastSnapshot
  /** What `log.written` was where the last snapshot began, had it always been counted. */
  #base: number
  #running: Promise<void> | undefined
  #notBefore = 0
  readonly #stop = new AbortController()

  constructor(
    disk: Disk,
    clock: Clock,
    kernel: Described,
    log: LogWriter,
    supply: SegmentSupply,
    durability: FileDurability,
    checkpoints: Checkpoints,
    last: LastSnapshot,
    options: CompactorOptions,
  ) {
    this.#disk = disk
    this.#clock = clock
    this.#kernel = kernel
    this.#log = log
    this.#supply = supply
    this.#durability = durability
    this.#checkpoints = checkpoints
    this.#last = last
    this.#base = log.written - last.logBytes
    this.#options = options
    // On a full disk a snapshot may be what makes space: it removes the log before it.
    supply.onFault = () => this.#relieve()
  }

  /** To be called when the log has grown. */
  consider(): void {
    const grown = this.#log.written - this.#base
    if (grown > Math.max(this.#options.snapshotBytes, 2 * this.#last.bytes)) this.#begin()
  }

  /** Gives up what is under way: the log has everything. */
  async close(): Promise<void> {
    this.#stop.abort()
    await this.#running
  }

  #relieve(): void {
    if (this.#log.position.segment > this.#last.segment) this.#begin()
  }

  #begin(): void {
    if (this.#running || this.#stop.signal.aborted || this.#clock.now() < this.#notBefore) return
    this.#running = this.#run().then(
      () => {
        this.#running = undefined
        this.#supply.want(this.#log.position.segment + 1)
      },
      () => {
        // The log is as good as before, only longer. Most likely there was no space.
        this.#running = undefined
        this.#notBefore = this.#clock.now() + RETRY_MS
      },
    )
  }

  async #run(): Promise<void> {
    const start = this.#log.position
    const base = this.#log.written
    const number = this.#last.number + 1
    const { signal } = this.#stop
    const bytes = await writeSnapshot(this.#disk, this.#clock, this.#kernel, {
      storeId: this.#options.storeId,
      shift: this.#options.shift,
      number,
      start,
      logged: async () => {
        await this.#durability.eventually(signal)
        return this.#log.position.sequence
      },
      signal,
    })
    await this.#checkpoints.snapshotTaken(number)
    this.#last = { number, bytes, segment: start.segment, logBytes: 0 }
    this.#base = base
    await removeOutdated(this.#disk, await this.#disk.list(), { number, start })
  }
}
