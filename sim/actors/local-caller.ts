import type { LeaseStore } from 'leasehold/port'
import type { SimServer } from 'leasehold/testing'
import { ONCE } from '../checkers/answers/i08-counts-once.js'
import type { Harness } from '../world/harness.js'

const TTL_MS = 1500

/**
 * Calls the store of a server in the server's own process, without a request id. No network can
 * duplicate a call, so each call must be executed at most once. It also reads: a server that is
 * behind the log must not answer with its old state.
 */
export class LocalCaller {
  readonly #harness: Harness
  readonly #server: SimServer
  #calls = 0
  #stopping = false

  constructor(harness: Harness, server: SimServer) {
    this.#harness = harness
    this.#server = server
  }

  start(): void {
    const { world } = this.#harness
    world.after(world.random.between(100, 1200), () => {
      if (this.#stopping) return
      this.#call()
      this.start()
    })
  }

  stop(): void {
    this.#stopping = true
  }

  #call(): void {
    const { node, store } = this.#server
    if (!store || !node.running) return
    const key = `${ONCE}${node.name} ${++this.#calls}`
    // The events of the log show the outcome.
    store.grant({ holder: node.name, ttl: TTL_MS, claims: [{ key }] }).catch(() => undefined)
    this.#read(store)
  }

  #read(store: LeaseStore): void {
    const invoked = this.#harness.world.now
    store.read({ leases: true, limit: 1 }).then(
      ({ revision }) => this.#harness.revision(revision, invoked),
      () => undefined,
    )
  }
}
