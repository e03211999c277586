import type { Capped, LeaseholdError, Lost, Renewed } from '../port/index.ts'
import { storeError } from './call.ts'
import type { ClientCore } from './core.ts'
import type { Keeper } from './keeper.ts'

/** Leases in one call, so that no message grows without bound. */
const BATCH = 1000

/**
 * Renews the leases of one client: all that are due together travel in one call.
 *
 * Every send has a stamp of its own, taken before it leaves, and its answer proves only that the
 * leases live from that stamp on. So sends may overlap, get lost and be answered late or out of
 * order, and no answer ever makes a deadline later than it truly is.
 */
export class Heartbeat {
  readonly #core: ClientCore
  #due = new Set<Keeper>()

  constructor(core: ClientCore) {
    this.#core = core
  }

  /** Renews the lease with the others that are due in this turn. */
  add(keeper: Keeper): void {
    if (this.#due.size === 0) queueMicrotask(() => this.#flush())
    this.#due.add(keeper)
  }

  #flush(): void {
    const due = [...this.#due].filter((keeper) => keeper.alive)
    this.#due.clear()
    for (let from = 0; from < due.length; from += BATCH) {
      this.#send(due.slice(from, from + BATCH))
    }
  }

  #send(batch: readonly Keeper[]): void {
    const stamp = this.#core.agenda.now()
    for (const keeper of batch) keeper.sent(stamp)
    let promise: Promise<Renewed>
    try {
      promise = this.#core.store.renew(batch.map((keeper) => keeper.lease))
    } catch (error) {
      promise = Promise.reject(error)
    }
    promise.then(
      (answer) => this.#answered(batch, stamp, answer),
      (error) => this.#failed(batch, storeError(error)),
    )
  }

  #answered(batch: readonly Keeper[], stamp: number, answer: Renewed): void {
    const lost = new Map<string, Lost>(answer.lost.map((entry) => [entry.lease, entry]))
    const capped = new Map<string, Capped>(answer.capped.map((entry) => [entry.lease, entry]))
    for (const keeper of batch) {
      const end = lost.get(keeper.lease)
      if (end !== undefined) keeper.told(end.end)
      else keeper.renewed(stamp, capped.get(keeper.lease))
    }
  }

  /** Nothing is known of any of them: each has planned its next try when this one was sent. */
  #failed(batch: readonly Keeper[], error: LeaseholdError): void {
    for (const keeper of batch) keeper.notRenewed(error)
  }
}
