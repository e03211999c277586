import type { ChangeSink } from '../kernel/index.ts'
import type { Refusal } from '../port/index.ts'

/**
 * How a runner makes its kernel's changes last. The runner answers a call, and tells watches of
 * a change, only when `durable()` has been fulfilled: no answer rests on what could be lost.
 */
export interface Durability {
  /** Where the kernel tells its changes. Must not fail: see `obstacle`. */
  readonly changeSink: ChangeSink

  /**
   * Whether something that the journal was told is not durable yet. Where it is false an answer
   * may be given at once.
   */
  readonly pending: boolean

  /**
   * Asked before a change: the refusal if it could not be written now. Changes that free something
   * (`shrink`: releases, ends) may still be possible where those that add (`grow`) are not, so that
   * a full disk does not keep leases from ending.
   */
  obstacle(kind: 'grow' | 'shrink'): Refusal | undefined

  /**
   * Fulfilled when all that the journal has been told so far is durable. Rejected, with an error
   * whose outcome is unknown, when writing failed; the changes stay, and writing is tried again. A
   * promise that was rejected is not given again: the next call's waits for the next attempt.
   */
  durable(): Promise<void>

  /** Makes durable what is pending, and lets go of everything. */
  close(): Promise<void>
}
