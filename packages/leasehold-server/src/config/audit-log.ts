import { closeSync, constants, fstatSync, openSync, renameSync, statSync, writeSync } from 'node:fs'
import { type Clock, invalid, show, systemReason } from 'leasehold/port'
import type { Audit, AuditEntry } from '../access/index.ts'
import { FileError, kindOf, NON_BLOCKING, restrictToOwner } from './small-file.ts'

/** The largest size of an audit file, and how many older files are kept. */
export const AUDIT_FILE_BYTES = 64 << 20
export const AUDIT_FILES_KEPT = 4
/** Longer strings in an entry are cut: a lease id from a client may have any length. */
const STRING_MAX = 1024

/**
 * Writes the audit to a file that only its owner can read, one line of JSON per entry. The line
 * reaches the operating system before the call is answered; it is not synced to the disk. A full
 * file is renamed to `.1`, that one to `.2`, and so on; the oldest is overwritten.
 */
export class AuditLog implements Audit {
  readonly #file: string
  readonly #clock: Clock
  readonly #failed: (error: unknown) => void
  readonly #bytesMax: number
  #descriptor: number
  /** The size of the file; `undefined` for a device. */
  #bytes: number | undefined

  /** `failed` is called if a line could not be written. The audited call still succeeds. */
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
        `audit is ${show(file)} (from ${origin}) and cannot be written: ${systemReason(error)}. Use a file in an existing folder, or 'none'`,
      )
    }
  }

  record(entry: AuditEntry): void {
    // The clock excludes the time the machine slept; the file shows wall-clock time.
    const time = new Date(this.#clock.now() + this.#clock.asleep()).toISOString()
    const line = Buffer.from(`${JSON.stringify({ time, ...entry }, cutString)}\n`)
    try {
      this.#makeRoom(line.length)
      writeSync(this.#descriptor, line)
      if (this.#bytes !== undefined) this.#bytes += line.length
    } catch (error) {
      this.#failed(error)
    }
  }

  /** Continues in a new file of the same name if the old one was moved away. */
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
      // Keep writing to the old file: exceeding the size is better than losing a line.
      this.#failed(error)
    }
  }
}

function opened(file: string): [descriptor: number, bytes: number | undefined] {
  const { O_WRONLY, O_APPEND, O_CREAT } = constants
  const descriptor = openSync(file, O_WRONLY | O_APPEND | O_CREAT | NON_BLOCKING, 0o600)
  try {
    const stats = fstatSync(descriptor)
    if (stats.isCharacterDevice()) return [descriptor, undefined]
    if (!stats.isFile()) throw new FileError(`it is ${kindOf(stats)}, not a file`)
    restrictToOwner(descriptor, stats)
    return [descriptor, stats.size]
  } catch (error) {
    closeSync(descriptor)
    throw error
  }
}

function cutString(_name: string, value: unknown): unknown {
  if (typeof value !== 'string' || value.length <= STRING_MAX) return value
  return `${value.slice(0, STRING_MAX)}… (${value.length} characters)`
}
