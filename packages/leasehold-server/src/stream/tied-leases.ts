import type { Clock, LeaseId, LeaseStore, Timer, Watch } from 'leasehold/port'
import type { Logger } from 'pino'

/**
 * Leases that are tied to their client's connection. When the connection closes, also because the
 * process was killed, they are revoked: at once, or if the client does not reconnect within its
 * linger.
 *
 * A stopping server revokes nothing: its clients reconnect to the next server and tie their leases
 * again. A killed server forgets its ties, and the leases that are not tied again end with their ttl.
 */
export class TiedLeases {
  readonly #store: LeaseStore
  readonly #clock: Clock
  readonly #log: Logger
  readonly #bonds = new Map<string, TiedClient>()
  #stopped = false

  constructor(store: LeaseStore, clock: Clock, log: Logger) {
    this.#store = store
    this.#clock = clock
    this.#log = log
  }

  /** A client has connected or reconnected. Its id must include its principal. */
  join(client: string, linger: number): TiedClient {
    let bond = this.#bonds.get(client)
    if (bond === undefined) {
      bond = { client, linger, leases: new Map(), timer: undefined, ended: false, forgotten: false }
      this.#bonds.set(client, bond)
    }
    bond.timer?.cancel()
    bond.linger = linger
    return bond
  }

  tie(bond: TiedClient, lease: LeaseId): void {
    if (this.#stopped || bond.forgotten || bond.leases.has(lease)) return
    // It was granted while its client disconnected.
    if (bond.ended) {
      this.#revoke(lease)
      return
    }
    const watch = this.#store.watch({ lease }, ({ type }) => {
      if (type === 'gone') bond.leases.delete(lease)
    })
    bond.leases.set(lease, watch)
  }

  /** The client has reconnected without ties, or has gone to another server: its leases stay. */
  forget(client: string): void {
    const bond = this.#bonds.get(client)
    if (bond === undefined) return
    bond.forgotten = true
    this.#release(bond)
  }

  /**
   * The client's connection has closed. A client that said goodbye does not return. Without tied
   * leases and calls in progress, there is nothing to wait for.
   */
  leave(bond: TiedClient, saidGoodbye: boolean, hasCalls: boolean): void {
    if (this.#stopped) return
    const isEmpty = bond.leases.size === 0 && !hasCalls
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

  #end(bond: TiedClient): void {
    bond.ended = true
    for (const lease of this.#release(bond)) this.#revoke(lease)
  }

  /** Unties all leases and returns them. */
  #release(bond: TiedClient): readonly LeaseId[] {
    bond.timer?.cancel()
    this.#bonds.delete(bond.client)
    const leases = [...bond.leases.keys()]
    for (const watch of bond.leases.values()) watch.close()
    bond.leases.clear()
    return leases
  }

  #revoke(lease: LeaseId): void {
    const why = "its holder's connection has closed"
    this.#store.revoke({ target: { lease }, by: 'leasehold-server', why }).catch((error) => {
      // The lease ends with its ttl.
      this.#log.warn({ lease, err: error }, 'cannot revoke a tied lease')
    })
  }
}

export interface TiedClient {
  readonly client: string
  linger: number
  readonly leases: Map<LeaseId, Watch>
  timer: Timer | undefined
  ended: boolean
  forgotten: boolean
}
