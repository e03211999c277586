import type { ChangeSink } from '../kernel/index.ts'
import type { Refusal } from '../port/index.ts'

/**
 * How a runner makes its kernel's changes durable. The runner answers a call, and notifies watches of
 * a change, only after `durable()` is fulfilled: no answer depends on a change that could be lost.
 */
export interface Durability {
  /** Receives the kernel's changes. Must not fail: see `obstacle`. */
  readonly changeSink: ChangeSink

  /** Whether a received change is not durable yet. If false, the runner may answer at once. */
  readonly pending: boolean

  /**
   * Called before a change. Returns the refusal if the change could not be written now. Changes that
   * free something (`shrink`: releases, ends) may be possible even if changes that add something
   * (`grow`) are not, so that leases can end although the disk is full.
   */
  obstacle(kind: 'grow' | 'shrink'): Refusal | undefined

  /**
   * Fulfilled when all changes received so far are durable. Rejected, with an error whose outcome is
   * unknown, if writing fails; the changes stay, and writing is tried again. A rejected promise is not
   * returned again: the next call's promise waits for the next attempt.
   */
  durable(): Promise<void>

  /** Makes pending changes durable, and releases all resources. */
  close(): Promise<void>
}
