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

  /** A client is here, for the first time or again. Its id must name its principal too. */
  join(client: string, linger: number): Bond {
    let bond = this.#bonds.get(client)
    if (bond === undefined) {
      bond = { client, linger, leases: new Map(), timer: undefined, ended: false, forgotten: false }
      this.#bonds.set(client, bond)
    }
    bond.timer?.cancel()
    bond.linger = linger
    return bond
  }

  tie(bond: Bond, lease: LeaseId): void {
    if (this.#stopped || bond.forgotten || bond.leases.has(lease)) return
    // It was granted while its client went away.
    if (bond.ended) {
      this.#revoke(lease)
      return
    }
    const watch = this.#store.watch({ lease }, ({ type }) => {
      if (type === 'gone') bond.leases.delete(lease)
    })
    bond.leases.set(lease, watch)
  }

  /** The client is back and ties nothing any more: its leases live on without it. */
  forget(client: string): void {
    const bond = this.#bonds.get(client)
    if (bond === undefined) return
    bond.forgotten = true
    this.#release(bond)
  }

  /**
   * The client's connection is closed. One who said goodbye does not come back; and where there is
   * nothing to revoke, and nothing under way that could become so, nothing is kept.
   */
  leave(bond: Bond, saidGoodbye: boolean, underWay: boolean): void {
    if (this.#stopped) return
    const isEmpty = bond.leases.size === 0 && !underWay
    if (saidGoodbye || bond.linger === 0 || isEmpty) this.#end(bond)
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
    for (const lease of this.#release(bond)) this.#revoke(lease)
  }

  /** Lets go of all that is tied, and answers with it. */
  #release(bond: Bond): readonly LeaseId[] {
    bond.timer?.cancel()
    this.#bonds.delete(bond.client)
    const leases = [...bond.leases.keys()]
    for (const watch of bond.leases.values()) watch.close()
    bond.leases.clear()
    return leases
  }

  #revoke(lease: LeaseId): void {
    const why = "its holder's connection was closed"
    this.#store.revoke({ target: { lease }, by: 'leasehold-server', why }).catch((error) => {
      // Its ttl ends it.
      this.#log.warn({ lease, err: error }, 'a tied lease could not be revoked')
    })
  }
}

export interface Bond {
  readonly client: string
  linger: number
  readonly leases: Map<LeaseId, Watch>
  timer: Timer | undefined
  ended: boolean
  forgotten: boolean
}
