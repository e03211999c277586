import type { End, Key, RequestId, Revision, Tenure } from '../port/index.ts'
import type { Ledger } from './ledger.ts'
import type { Answer } from './outputs/index.ts'

/**
 * What a kernel retains besides its leases, including the order in which it will forget it. A kernel
 * to which all of it is restored forgets the same things at the same time.
 */
export class RetainedState {
  readonly #ledger: Ledger

  constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  /** The answers of calls with request ids, oldest first. */
  answers(): Iterable<[RequestId, Answer]> {
    return this.#ledger.requests.entries()
  }

  /** How leases ended, by the revision of their grant, oldest first. */
  ends(): Iterable<[Revision, End]> {
    return this.#ledger.ended.entries()
  }

  /** All past tenures, oldest first; `undefined` for one whose key was forgotten. */
  tenures(): Iterable<readonly [Key, Tenure] | undefined> {
    return this.#ledger.tenures.all()
  }

  /** The idle keys, the next to be forgotten first, and whether each was claimed since. */
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
    else this.#ledger.tenures.addForgotten()
  }

  /** Restores all idle keys at once, after everything else. */
  setIdleKeys(keys: Iterable<readonly [Key, boolean]>): void {
    this.#ledger.tables.keys.setIdle(keys)
  }
}
