import { type Clock, ERRORS, type ErrorCode, type Timer } from 'leasehold/port'
import type { Audit, AuditEntry } from './audit.ts'

/** So many refusals of one principal at one address are written one by one, in each minute. */
export const REFUSALS_WRITTEN = 20
const WINDOW_MS = 60_000
/** So many principals and addresses are told apart; all further ones are one. */
const SOURCES_MAX = 1000

interface Source {
  readonly by: string
  readonly from: string | undefined
  readonly timer: Timer
  written: number
  /** Those that were not written, and the outcome of the last. */
  more: number
  outcome: string
}

/**
 * An audit that nobody can fill with refusals: the first ones of each minute are written, and then
 * one line says how many more there were. What was done, or may have been, is always written.
 */
export class LimitedAudit implements Audit {
  readonly #audit: Audit
  readonly #clock: Clock
  readonly #sources = new Map<string, Source>()

  constructor(audit: Audit, clock: Clock) {
    this.#audit = audit
    this.#clock = clock
  }

  record(entry: AuditEntry): void {
    if (!isRefusal(entry.outcome)) {
      this.#audit.record(entry)
      return
    }
    const source = this.#sourceOf(entry)
    if (source.written < REFUSALS_WRITTEN) {
      source.written++
      this.#audit.record(entry)
    } else {
      source.more++
      source.outcome = entry.outcome
    }
  }

  /** Writes what is yet to be said of refusals. */
  close(): void {
    for (const name of [...this.#sources.keys()]) this.#end(name)
  }

  #sourceOf({ by, from, outcome }: AuditEntry): Source {
    const isNew = !this.#sources.has(JSON.stringify([by, from]))
    const isOne = !isNew || this.#sources.size < SOURCES_MAX
    const who = isOne ? { by, from } : { by: 'others', from: undefined }
    const name = JSON.stringify([who.by, who.from])
    const known = this.#sources.get(name)
    if (known !== undefined) return known
    const timer = this.#clock.timer(this.#clock.now() + WINDOW_MS, () => this.#end(name))
    const source = { ...who, timer, written: 0, more: 0, outcome }
    this.#sources.set(name, source)
    return source
  }

  #end(name: string): void {
    const { by, from, timer, more, outcome } = this.#sources.get(name)!
    timer.cancel()
    this.#sources.delete(name)
    if (more === 0) return
    const why = `${more} more refusals within a minute`
    this.#audit.record({ action: 'refusals', by, from, why, outcome })
  }
}

function isRefusal(outcome: string): boolean {
  return outcome in ERRORS && ERRORS[outcome as ErrorCode].outcome === 'refused'
}
