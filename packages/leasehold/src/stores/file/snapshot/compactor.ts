import type { Clock } from '../../../port/index.ts'
import type { Checkpoints } from '../checkpoints.ts'
import type { Disk } from '../disk/disk.ts'
import type { FileDurability } from '../file-durability.ts'
import type { LogWriter } from '../log/log-writer.ts'
import type { SegmentSupply } from '../log/segment-supply.ts'
import { removeOutdated } from '../recovery.ts'
import { type Described, writeSnapshot } from './snapshot-writer.ts'

/** How long to wait after a failed snapshot before the next try. */
const RETRY_MS = 5000

export interface CompactorOptions {
  readonly storeId: string
  /** Log growth that triggers a snapshot; or twice the last snapshot, if that is more. */
  readonly snapshotBytes: number
  readonly shift: number
}

export interface LastSnapshot {
  readonly number: number
  readonly bytes: number
  /** The segment in which the log begins. */
  readonly segment: number
  /** How many bytes of log there are after it. */
  readonly logBytes: number
}

/** Writes a snapshot when the log has grown enough, then removes the older files. */
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
  /** `log.written` at the start of the last snapshot; negative if that was before this writer. */
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
    // On a full disk a snapshot may free space, because it allows the removal of older log files.
    supply.onFault = () => this.#freeSpace()
  }

  /** Call this when the log has grown. */
  consider(): void {
    const grown = this.#log.written - this.#base
    if (grown > Math.max(this.#options.snapshotBytes, 2 * this.#last.bytes)) this.#begin()
  }

  /** Abandons a snapshot in progress: the log contains everything. */
  async close(): Promise<void> {
    this.#stop.abort()
    await this.#running
  }

  #freeSpace(): void {
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
        // The log is still complete, only longer. The most likely cause is a full disk.
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
