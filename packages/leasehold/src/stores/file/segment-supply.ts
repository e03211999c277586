import type { Clock, Timer } from '../../port/index.ts'
import type { Disk } from './disk.ts'
import { prepareSegment } from './segment.ts'

const RETRY_MS = 1000
/** Those who ask for it while the disk is full do not have it tried more often than this. */
const PATIENCE_MS = 100

/**
 * Prepares the segment after the current one while there is still room in that, so that no commit
 * waits for it and a full disk is known of long before the log has nowhere to go.
 */
export class SegmentSupply {
  readonly #disk: Disk
  readonly #clock: Clock
  readonly #storeId: string
  readonly #bytes: number
  #last: number
  #preparing: Promise<void> | undefined
  #timer: Timer | undefined
  #closed = false
  #failedAt = 0
  /** Why the last try failed; nothing once one has succeeded. */
  fault: unknown
  /** Called when a try has failed, after those that wait for it were told. */
  onFault: () => void = () => {}

  /** `last` is the number of the last segment there is. */
  constructor(disk: Disk, clock: Clock, storeId: string, bytes: number, last: number) {
    this.#disk = disk
    this.#clock = clock
    this.#storeId = storeId
    this.#bytes = bytes
    this.#last = last
  }

  /** The size of the segments that it prepares. */
  get bytes(): number {
    return this.#bytes
  }

  /** The number of the last segment that is ready. */
  get last(): number {
    return this.#last
  }

  /** Fulfilled when the segment with this number is there; rejected if it could not be made. */
  async need(number: number): Promise<void> {
    while (this.#last < number) {
      this.#preparing ??= this.#prepare()
      await this.#preparing
    }
  }

  /** Prepares it in the background, and tries again and again if that fails. */
  want(number: number): void {
    if (this.#closed) return
    if (this.fault !== undefined && this.#clock.now() < this.#failedAt + PATIENCE_MS) return
    this.need(number).catch(() => {
      if (this.#closed || this.#timer) return
      this.#timer = this.#clock.timer(this.#clock.now() + RETRY_MS, () => {
        this.#timer = undefined
        this.want(number)
      })
    })
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#timer?.cancel()
    await this.#preparing?.catch(() => {})
  }

  async #prepare(): Promise<void> {
    const number = this.#last + 1
    try {
      await prepareSegment(this.#disk, { storeId: this.#storeId, number, bytes: this.#bytes })
      this.#last = number
      this.fault = undefined
    } catch (error) {
      this.fault = error
      this.#failedAt = this.#clock.now()
      this.#clock.defer(() => this.onFault())
      throw error
    } finally {
      this.#preparing = undefined
    }
  }
}
