import { type Network, SimLog, type SimNode, SimServer, type World } from 'leasehold/testing'
import type { WorldSetup } from '../actors/actors.js'
import { LogLag } from './log-lag.js'

/** The servers of a world, and the log that several of them share. */
export class ServerGroup {
  readonly all: readonly SimServer[]
  readonly log: SimLog
  readonly lag: LogLag
  /** The rates of the fastest and of the slowest clock. */
  readonly fastest: number
  readonly slowest: number
  readonly #world: World
  readonly #clients = new Map<string, number>()

  constructor(world: World, network: Network, { servers, store }: WorldSetup, rate: () => number) {
    this.#world = world
    const rates = Array.from({ length: servers }, rate)
    this.fastest = Math.max(...rates)
    this.slowest = Math.min(...rates)
    this.all = rates.map((each, at) => {
      const name = servers === 1 ? 'server' : `server ${at + 1}`
      const offset = world.random.between(0, 1e6)
      return new SimServer(world.node(name, { rate: each, offset }), network)
    })
    this.log = new SimLog(store === 'log' ? world.node('log') : this.first.node, network)
    this.lag = new LogLag(this.log, () => world.now)
  }

  get first(): SimServer {
    return this.all[0]!
  }

  /** Whether all have begun to serve. */
  get areServing(): boolean {
    return this.all.every(({ store }) => store !== undefined)
  }

  /** The server that a client talks to: the same one until it moves. */
  of(client: SimNode): SimServer {
    const at = this.#clients.get(client.name) ?? this.#clients.size
    this.#clients.set(client.name, at)
    return this.all[at % this.all.length]!
  }

  /** From now on the client talks to another server, if there is one. */
  move(client: SimNode): void {
    this.#clients.set(client.name, (this.#clients.get(client.name) ?? 0) + 1)
  }

  any(): SimServer {
    return this.all.length === 1 ? this.first : this.#world.random.pick(this.all)
  }
}
