import type { Capped, LeaseholdError, Lost, Renewed } from '../../port/index.ts'
import type { ClientCore } from '../core.ts'
import { storeError } from '../store-calls/index.ts'
import type { KeptLease } from './kept-lease.ts'

/** How many leases one call renews at most, so that no message grows without bound. */
const BATCH = 1000

/**
 * Renews the leases of one client: all that are due together are renewed in one call.
 *
 * Each send notes its own time before it leaves, and its answer proves only that the leases live
 * from that time on. So sends may overlap, get lost, or be answered late or out of order, and no
 * answer ever moves a deadline past the true one.
 */
export class Heartbeat {
  readonly #core: ClientCore
  #due = new Set<KeptLease>()

  constructor(core: ClientCore) {
    this.#core = core
  }

  /** Renews the lease with the others that are due in this turn. */
  add(lease: KeptLease): void {
    if (this.#due.size === 0) queueMicrotask(() => this.#flush())
    this.#due.add(lease)
  }

  #flush(): void {
    const due = [...this.#due].filter((lease) => lease.alive)
    this.#due.clear()
    for (let from = 0; from < due.length; from += BATCH) {
      this.#send(due.slice(from, from + BATCH))
    }
  }

  #send(batch: readonly KeptLease[]): void {
    const sentAt = this.#core.timers.now()
    for (const lease of batch) lease.renewalSent(sentAt)
    let promise: Promise<Renewed>
    try {
      promise = this.#core.store.renew(batch.map((lease) => lease.id))
    } catch (error) {
      promise = Promise.reject(error)
    }
    promise.then(
      (answer) => this.#answered(batch, sentAt, answer),
      (error) => this.#failed(batch, storeError(error)),
    )
  }

  #answered(batch: readonly KeptLease[], sentAt: number, answer: Renewed): void {
    const lost = new Map<string, Lost>(answer.lost.map((entry) => [entry.lease, entry]))
    const capped = new Map<string, Capped>(answer.capped.map((entry) => [entry.lease, entry]))
    for (const lease of batch) {
      const end = lost.get(lease.id)
      if (end !== undefined) lease.endedByStore(end.end)
      else lease.renewed(sentAt, capped.get(lease.id))
    }
  }

  /** Nothing is known about any of them. Each planned its next try when this one was sent. */
  #failed(batch: readonly KeptLease[], error: LeaseholdError): void {
    for (const lease of batch) lease.notRenewed(error)
  }
}
