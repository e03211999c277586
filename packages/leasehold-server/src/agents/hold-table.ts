import { invalid, LeaseholdError, show } from 'leasehold/port'
import type { HoldRecord } from './hold-record.ts'

/** Ended holds that `mine` still shows. */
const ENDED_KEPT = 50
/** Open holds of one connection. */
const OPEN_MAX = 1000
/** Handles that an error names. */
const NAMED_MAX = 10

/** The holds of one connection by their handles: all open ones, and the last of those that ended. */
export class HoldTable {
  readonly #records = new Map<string, HoldRecord>()

  add(record: HoldRecord): void {
    if (this.open.length >= OPEN_MAX) {
      throw new LeaseholdError(
        'limit-exceeded',
        `this connection has ${OPEN_MAX} open holds, the maximum: call mine, and release what is not needed`,
      )
    }
    this.#records.set(record.handle, record)
    this.#trim()
  }

  /** For a hold whose handle nobody has been told. */
  remove({ handle }: HoldRecord): void {
    this.#records.delete(handle)
  }

  has(handle: string): boolean {
    return this.#records.has(handle)
  }

  find(handle: string): HoldRecord {
    const record = this.#records.get(handle)
    if (record !== undefined) return record
    const known = this.open.map(({ handle: each }) => each)
    throw invalid(
      `hold is ${show(handle)}: this connection has no such hold. ${known.length === 0 ? 'It has none; call acquire first' : `Call mine; it has ${known.slice(0, NAMED_MAX).join(', ')}`}`,
    )
  }

  /** Those that are held or wait. */
  get open(): HoldRecord[] {
    return [...this.#records.values()].filter((it) => it.isOpen)
  }

  /** Those that are held, wait, or were lost; the latest last. */
  get unreleased(): HoldRecord[] {
    return [...this.#records.values()].filter((it) => it.state !== 'released')
  }

  /** Forgets ended holds, those first whose end their agent knows. */
  #trim(): void {
    const ended = [...this.#records.values()].filter((it) => !it.isOpen)
    const isKnown = ({ state, isReported }: HoldRecord) => state === 'released' || isReported
    const knownFirst = [...ended.filter(isKnown), ...ended.filter((it) => !isKnown(it))]
    for (const record of knownFirst.slice(0, Math.max(0, ended.length - ENDED_KEPT))) {
      this.remove(record)
    }
  }
}
