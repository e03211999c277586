import { type Clock, ERRORS, type ErrorCode, type Timer } from 'leasehold/port'
import type { Audit, AuditEntry } from './audit.ts'

/** The most refusals per minute that are recorded for one principal and address. */
export const REFUSALS_WRITTEN = 20
const WINDOW_MS = 60_000
/** The most principals and addresses that are tracked; all others count as one. */
const SOURCES_MAX = 1000

interface Source {
  readonly by: string
  readonly from: string | undefined
  readonly timer: Timer
  written: number
  /** The number of refusals that were not recorded, and the outcome of the last. */
  more: number
  outcome: string
}

/**
 * Limits the refusals in the audit log, so that nobody can fill it: it records the first ones of each
 * minute, and then one entry with the number of the others. Everything that was done, or may have
 * been done, is always recorded.
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

  /** Records the pending refusals. */
  close(): void {
    for (const name of [...this.#sources.keys()]) this.#end(name)
  }

  #sourceOf({ by, from, outcome }: AuditEntry): Source {
    const isNew = !this.#sources.has(JSON.stringify([by, from]))
    const isOne = !isNew || this.#sources.size < SOURCES_MAX
    const origin = isOne ? { by, from } : { by: 'others', from: undefined }
    const name = JSON.stringify([origin.by, origin.from])
    const known = this.#sources.get(name)
    if (known !== undefined) return known
    const timer = this.#clock.timer(this.#clock.now() + WINDOW_MS, () => this.#end(name))
    const source = { ...origin, timer, written: 0, more: 0, outcome }
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
