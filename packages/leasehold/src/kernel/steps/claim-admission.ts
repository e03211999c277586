import { type Ahead, type Busy, type ClaimSpec, type Complaint, show } from '../../port/index.ts'
import type { Ledger } from '../ledger.ts'
import type { Reader } from '../reader.ts'
import { NONE } from '../tables/index.ts'
import { expireLease } from './expire.ts'

export const NOTHING_AHEAD: readonly Ahead[] = []

/** Decides whether claims are admitted, and which claims are before them. */
export class ClaimAdmission {
  readonly #ledger: Ledger
  readonly #reader: Reader

  constructor(ledger: Ledger, reader: Reader) {
    this.#ledger = ledger
    this.#reader = reader
  }

  /** Ends overdue leases at the front of these keys, and checks that their queues have room. */
  prepare(specs: readonly ClaimSpec[], now: number): Complaint {
    for (const spec of specs) {
      const complaint = this.#prepareKey(spec.key, now)
      if (complaint) return complaint
    }
    return undefined
  }

  areFree(specs: readonly ClaimSpec[]): boolean {
    return specs.every((spec) => this.#isFree(spec))
  }

  /** The answer if they are not free. */
  busy(specs: readonly ClaimSpec[]): Busy {
    const { keys } = this.#ledger.tables
    const ahead: Ahead[] = []
    for (const spec of specs) {
      if (this.#isFree(spec)) continue
      const key = keys.find(spec.key)
      ahead.push(this.#reader.ahead(key, keys.count.get(key)))
    }
    return { outcome: 'busy', revision: this.#ledger.revision, ahead }
  }

  /** The claims before those of a call that were just queued. `first` is one of the call's. */
  ahead(first: number): readonly Ahead[] {
    const { claims, keys } = this.#ledger.tables
    if (claims.allHold(first)) return NOTHING_AHEAD
    const ahead: Ahead[] = []
    for (let claim = first; ; ) {
      if (claims.heldSince.get(claim) === 0) {
        const key = claims.key.get(claim)
        ahead.push(this.#reader.ahead(key, keys.count.get(key) - 1))
      }
      claim = claims.nextInCall.get(claim)
      if (claim === first) return ahead
    }
  }

  #prepareKey(name: string, now: number): Complaint {
    const { leases, claims, keys } = this.#ledger.tables
    for (;;) {
      const key = keys.find(name)
      if (key === NONE) return undefined
      const first = keys.first.get(key)
      if (first === NONE) return undefined
      const lease = claims.lease.get(first)
      if (!this.#ledger.isTimed || leases.deadline(lease) > now) break
      expireLease(this.#ledger, lease, now)
    }
    const count = keys.count.get(keys.find(name))
    if (count < this.#ledger.limits.claimsPerKey) return undefined
    return {
      code: 'limit-exceeded',
      message: `key ${show(name)} has ${count} claims, the maximum. Wait until some are released.`,
    }
  }

  #isFree({ key: name, mode = 'exclusive', limit = 0 }: ClaimSpec): boolean {
    const key = this.#ledger.tables.keys.find(name)
    return key === NONE || this.#ledger.queues.wouldHold(key, mode, limit)
  }
}
