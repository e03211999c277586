import { closeSync, constants, fstatSync, openSync, renameSync, statSync, writeSync } from 'node:fs'
import { type Clock, invalid, show } from 'leasehold/port'
import type { Audit, AuditEntry } from '../access/index.ts'
import { FileFault, kindOf, NO_WAITING, tighten } from './whole-file.ts'

/** A file of the audit has at most so many bytes, and so many older ones are kept beside it. */
export const AUDIT_FILE_BYTES = 64 << 20
export const AUDIT_FILES_KEPT = 4
/** A longer string in an entry is cut: a lease's id, as somebody sent it, may have any length. */
const STRING_MAX = 1024

/**
 * Writes the audit to a file, a line of JSON for each entry, for its owner's eyes only. A line is
 * handed to the operating system before the call is answered; it is not synced to the disk. When the
 * file is full it is renamed to `.1`, that to `.2`, and so on; the oldest is overwritten.
 */
export class AuditLog implements Audit {
  readonly #file: string
  readonly #clock: Clock
  readonly #failed: (error: unknown) => void
  readonly #bytesMax: number
  #descriptor: number
  /** How much is in the file; `undefined` if it is a device, which has no end. */
  #bytes: number | undefined

  /** `failed` is called if a line could not be written: what was asked for is done all the same. */
  constructor(
    file: string,
    origin: string,
    clock: Clock,
    failed: (error: unknown) => void,
    bytesMax = AUDIT_FILE_BYTES,
  ) {
    this.#file = file
    this.#clock = clock
    this.#failed = failed
    this.#bytesMax = bytesMax
    try {
      ;[this.#descriptor, this.#bytes] = opened(file)
    } catch (error) {
      throw invalid(
        `audit is ${show(file)} (from ${origin}), which cannot be written (${(error as Error).message}): name a file in a folder that is there, or 'none'`,
      )
    }
  }

  record(entry: AuditEntry): void {
    // The clock leaves out the time that the machine slept, which a reader of the file does not.
    const time = new Date(this.#clock.now() + this.#clock.asleep()).toISOString()
    const line = Buffer.from(`${JSON.stringify({ time, ...entry }, shortened)}\n`)
    try {
      this.#makeRoom(line.length)
      writeSync(this.#descriptor, line)
      if (this.#bytes !== undefined) this.#bytes += line.length
    } catch (error) {
      this.#failed(error)
    }
  }

  /** Goes on in a new file of the same name, if the old one was moved away. */
  reopen(): void {
    const next = opened(this.#file)
    closeSync(this.#descriptor)
    ;[this.#descriptor, this.#bytes] = next
  }

  close(): void {
    closeSync(this.#descriptor)
  }

  #makeRoom(bytes: number): void {
    if (this.#bytes === undefined || this.#bytes === 0) return
    if (this.#bytes + bytes <= this.#bytesMax) return
    try {
      for (let age = AUDIT_FILES_KEPT - 1; age >= 0; age--) {
        const from = age === 0 ? this.#file : `${this.#file}.${age}`
        if (statSync(from, { throwIfNoEntry: false })) renameSync(from, `${this.#file}.${age + 1}`)
      }
      this.reopen()
    } catch (error) {
      // The old file goes on: a line that is written too much is better than one that is lost.
      this.#failed(error)
    }
  }
}

function opened(file: string): [descriptor: number, bytes: number | undefined] {
  const { O_WRONLY, O_APPEND, O_CREAT } = constants
  const descriptor = openSync(file, O_WRONLY | O_APPEND | O_CREAT | NO_WAITING, 0o600)
  try {
    const stats = fstatSync(descriptor)
    if (stats.isCharacterDevice()) return [descriptor, undefined]
    if (!stats.isFile()) throw new FileFault(`it is ${kindOf(stats)}, not a file`)
    tighten(descriptor, stats)
    return [descriptor, stats.size]
  } catch (error) {
    closeSync(descriptor)
    throw error
  }
}

function shortened(_name: string, value: unknown): unknown {
  if (typeof value !== 'string' || value.length <= STRING_MAX) return value
  return `${value.slice(0, STRING_MAX)}… (${value.length} characters)`
}
