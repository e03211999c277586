import type { Clock, Timer } from '../../../port/index.ts'
import type { Disk } from '../disk/disk.ts'
import { prepareSegment } from './segment.ts'

const RETRY_MS = 1000
/** The minimum time between two tries on a full disk, however many callers ask. */
const RETRY_MS_MIN = 100

/**
 * Prepares the next segment while the current one still has room. So no commit waits for it, and a
 * full disk is noticed long before the log has no room left.
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
  /** Why the last try failed; `undefined` after a success. */
  fault: unknown
  /** Called when a try has failed, after the waiting calls were rejected. */
  onFault: () => void = () => {}

  /** `last` is the number of the last existing segment. */
  constructor(disk: Disk, clock: Clock, storeId: string, bytes: number, last: number) {
    this.#disk = disk
    this.#clock = clock
    this.#storeId = storeId
    this.#bytes = bytes
    this.#last = last
  }

  get bytes(): number {
    return this.#bytes
  }

  /** The number of the last segment that is ready. */
  get last(): number {
    return this.#last
  }

  /** Fulfilled when the segment with this number exists; rejected if its preparation failed. */
  async need(number: number): Promise<void> {
    while (this.#last < number) {
      this.#preparing ??= this.#prepare()
      await this.#preparing
    }
  }

  /** Prepares it in the background, with retries. */
  want(number: number): void {
    if (this.#closed) return
    if (this.fault !== undefined && this.#clock.now() < this.#failedAt + RETRY_MS_MIN) return
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
