import type { Clock, LeaseId, LeaseStore, Timer, Watch } from 'leasehold/port'
import type { Logger } from 'pino'

/**
 * Leases that are tied to their client's connection. When that is closed, be it by the operating
 * system of a process that was killed, they are revoked: at once, or when the client has not come
 * back within its linger.
 *
 * A server that stops revokes nothing: its clients come back to the next one and tie their leases
 * anew. One that was killed has forgotten its ties, and the ttl ends what nobody ties again.
 */
export class Ties {
  readonly #store: LeaseStore
  readonly #clock: Clock
  readonly #log: Logger
  readonly #bonds = new Map<string, Bond>()
  #stopped = false

  constructor(store: LeaseStore, clock: Clock, log: Logger) {
    this.#store = store
    this.#clock = clock
    this.#log = log
  }

  /** The client is here, for the first time or again. */
  join(client: string, linger: number): Bond {
    let bond = this.#bonds.get(client)
    if (bond === undefined) {
      bond = { client, linger, leases: new Map(), timer: undefined, ended: false }
      this.#bonds.set(client, bond)
    }
    bond.timer?.cancel()
    bond.linger = linger
    return bond
  }

  tie(bond: Bond, lease: LeaseId): void {
    if (this.#stopped || bond.leases.has(lease)) return
    // It was granted while its client went away.
    if (bond.ended) {
      this.#revoke(bond, lease)
      return
    }
    const watch = this.#store.watch({ lease }, ({ type }) => {
      if (type === 'gone') bond.leases.delete(lease)
    })
    bond.leases.set(lease, watch)
  }

  /** The client's connection is closed. One who said goodbye does not come back. */
  leave(bond: Bond, saidGoodbye: boolean): void {
    if (this.#stopped) return
    if (saidGoodbye || bond.linger === 0) this.#end(bond)
    else bond.timer = this.#clock.timer(this.#clock.now() + bond.linger, () => this.#end(bond))
  }

  stop(): void {
    this.#stopped = true
    for (const bond of this.#bonds.values()) {
      bond.timer?.cancel()
      for (const watch of bond.leases.values()) watch.close()
    }
    this.#bonds.clear()
  }

  #end(bond: Bond): void {
    bond.ended = true
    this.#bonds.delete(bond.client)
    for (const [lease, watch] of bond.leases) {
      watch.close()
      this.#revoke(bond, lease)
    }
    bond.leases.clear()
  }

  #revoke({ client }: Bond, lease: LeaseId): void {
    const why = "its holder's connection was closed"
    this.#store.revoke({ target: { lease }, by: 'leasehold-server', why }).catch((error) => {
      // Its ttl ends it.
      this.#log.warn({ client, lease, err: error }, 'a tied lease could not be revoked')
    })
  }
}

export interface Bond {
  readonly client: string
  linger: number
  readonly leases: Map<LeaseId, Watch>
  timer: Timer | undefined
  ended: boolean
}
