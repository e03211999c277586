import type { End, Key, RequestId, Revision, Tenure } from '../port/index.ts'
import type { Ledger } from './ledger.ts'
import type { Answer } from './requests.ts'

/**
 * What a kernel remembers beside its leases, exactly: also in which order it will forget. A kernel to
 * which all of it is given back forgets the same things at the same time.
 */
export class Memory {
  readonly #ledger: Ledger

  constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  /** The answers of calls with request ids, the oldest first. */
  answers(): Iterable<[RequestId, Answer]> {
    return this.#ledger.requests.entries()
  }

  /** How leases ended, by the revision of their grant, the oldest first. */
  ends(): Iterable<[Revision, End]> {
    return this.#ledger.ended.entries()
  }

  /** All past tenures, the oldest first; `undefined` for one whose key is forgotten. */
  tenures(): Iterable<readonly [Key, Tenure] | undefined> {
    return this.#ledger.tenures.all()
  }

  /** The keys that wait to be forgotten, the next one first, and whether they were used meanwhile. */
  idleKeys(): Iterable<readonly [Key, boolean]> {
    return this.#ledger.tables.keys.idle()
  }

  addAnswer(request: RequestId, answer: Answer): void {
    this.#ledger.requests.set(request, answer)
  }

  addEnd(born: Revision, end: End): void {
    this.#ledger.ended.set(born, end)
  }

  addTenure(tenure: readonly [Key, Tenure] | undefined): void {
    if (tenure) this.#ledger.tenures.restore(...tenure)
    else this.#ledger.tenures.leaveOut()
  }

  /** All idle keys at once, after everything else. */
  setIdleKeys(keys: Iterable<readonly [Key, boolean]>): void {
    this.#ledger.tables.keys.setIdle(keys)
  }
}
