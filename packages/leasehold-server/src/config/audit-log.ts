import { closeSync, openSync, writeSync } from 'node:fs'
import { type Clock, LeaseholdError, show } from 'leasehold/port'
import type { Audit, AuditEntry } from '../access/index.ts'

/**
 * Writes the audit to a file, a line of JSON for each entry, for its owner's eyes only. A line is
 * handed to the operating system before the call is answered; it is not synced to the disk.
 */
export class AuditLog implements Audit {
  readonly #file: string
  readonly #clock: Clock
  readonly #failed: (error: unknown) => void
  #descriptor: number

  /** `failed` is told where a line could not be written: what was asked for is done all the same. */
  constructor(file: string, origin: string, clock: Clock, failed: (error: unknown) => void) {
    this.#file = file
    this.#clock = clock
    this.#failed = failed
    try {
      this.#descriptor = openSync(file, 'a', 0o600)
    } catch (error) {
      throw new LeaseholdError(
        'invalid-argument',
        `audit is ${show(file)} (from ${origin}), which cannot be written (${(error as Error).message}): name a file in a folder that is there, or 'none'`,
      )
    }
  }

  record(entry: AuditEntry): void {
    // The clock leaves out the time that the machine slept, which a reader of the file does not.
    const time = new Date(this.#clock.now() + this.#clock.asleep()).toISOString()
    try {
      writeSync(this.#descriptor, `${JSON.stringify({ time, ...entry })}\n`)
    } catch (error) {
      this.#failed(error)
    }
  }

  /** Goes on in a new file of the same name, where the old one was moved away. */
  reopen(): void {
    const next = openSync(this.#file, 'a', 0o600)
    closeSync(this.#descriptor)
    this.#descriptor = next
  }

  close(): void {
    closeSync(this.#descriptor)
  }
}
