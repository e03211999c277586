import type { LeaseId, LeaseStore } from 'leasehold/port'
import type { SimNode } from 'leasehold/testing'
import type { Harness } from '../world/harness.js'

const TTL_MS = 1500
/** This many are renewed; all others expire together. */
const KEPT = 3
/** How often they are renewed: until the others have expired, even after a restart. */
const RENEWALS = 9

/** Gets many leases at once, lets most of them expire, and renews the rest. */
export class MassExpiry {
  readonly node: SimNode
  readonly #harness: Harness
  readonly #store: LeaseStore
  readonly #leases: number
  readonly #kept: LeaseId[] = []
  #stopping = false

  constructor(harness: Harness, name: string, leases: number) {
    this.#leases = leases
    this.#harness = harness
    this.node = harness.client(name)
    this.#store = harness.store(this.node)
  }

  start(): void {
    this.#later(this.node.random.between(0, 8000), () => this.#begin())
  }

  stop(): void {
    this.#stopping = true
  }

  #begin(): void {
    for (let lease = 0; lease < this.#leases; lease++) {
      const keep = lease < KEPT
      this.#store.grant({ holder: this.node.name, ttl: TTL_MS }).then(
        (answer) => {
          if (keep && answer.outcome === 'granted') this.#kept.push(answer.lease)
        },
        () => undefined,
      )
    }
    this.#later(TTL_MS / 3, () => this.#renew(RENEWALS))
  }

  #renew(left: number): void {
    if (this.#stopping || left === 0) return
    if (this.#kept.length > 0) this.#store.renew([...this.#kept]).catch(() => undefined)
    this.#later(TTL_MS / 3, () => this.#renew(left - 1))
  }

  #later(ms: number, run: () => void): void {
    this.#harness.world.after(ms, this.node.guard(run))
  }
}
