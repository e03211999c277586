import type { Client } from '../../client/index.ts'
import { keyPart } from '../arguments.ts'
import { Checker, type CheckerOptions } from './checker/checker.ts'
import type { ProbeMaker } from './checker/probe.ts'
import { Discovery, type WatchOptions } from './discovery/discovery.ts'
import { find, services } from './discovery/find.ts'
import type { InstanceSpec } from './instance/description.ts'
import { entryOf, type InstanceUpdate, type RegistryEntry, updatedEntry } from './instance/entry.ts'
import type { Filter, Instance } from './instance/instance.ts'
import {
  NodeHeartbeat,
  type NodeOptions,
  NodesWatch,
  type NodesWatchOptions,
} from './registration/nodes.ts'
import { type RegisterOptions, Registration } from './registration/registration.ts'

/**
 * A registry of services and their instances.
 *
 * An instance is a claim on a key of its own, `services/<service>/<id>`, that says what it is, under
 * a lease that its process keeps alive. It is found for as long as that lease lives: it leaves at
 * once when it is released or revoked, and when its ttl is over if its process has died.
 *
 * **Promised.** An instance that is registered is found by everyone who can reach the store. One id
 * stands for one registration at a time. Nothing that anybody writes into an entry harms those who
 * read the others.
 *
 * **Not promised.** That what is found still answers: a process is dead for up to its ttl before
 * anybody knows. Health checks and callers' own retries are for that.
 */
export class Registry {
  readonly #client: Client
  readonly #probes: ProbeMaker

  /** `probes` makes what looks at instances over the network. */
  constructor(client: Client, probes: ProbeMaker) {
    this.#client = client
    this.#probes = probes
  }

  /** Registers an instance and keeps it registered until it is released. */
  register(service: string, options: RegisterOptions): Promise<Registration> {
    return Registration.begin(this.#client, service, options)
  }

  /** What a registration writes, for an instance whose lease somebody else keeps. */
  entry(service: string, id: string, spec: InstanceSpec): RegistryEntry {
    return entryOf(service, id, spec)
  }

  /** The value of such an entry after its instance has written how it is. */
  amended(value: string | undefined, news: InstanceUpdate): string {
    return updatedEntry(value, news)
  }

  /** The instances of a service as they are now, asked of the store. */
  find(service: string, filter?: Filter): Promise<readonly Instance[]> {
    return find(this.#client, service, filter)
  }

  /** The names of all services that have an instance. */
  services(): Promise<readonly string[]> {
    return services(this.#client)
  }

  /** The instances of a service, kept up to date: for whoever asks more than once. */
  watch(service: string, options?: WatchOptions): Discovery {
    return new Discovery(this.#client, keyPart('service', service), options)
  }

  /** Runs the health checks that instances ask for, as long as it is this checker's turn. */
  checker(options: CheckerOptions = {}): Checker {
    return new Checker(this.#client, options, this.#probes)
  }

  /** Begins the heartbeat of a node: what is registered through it ends with it. */
  node(id: string, options: NodeOptions = {}): Promise<NodeHeartbeat> {
    return NodeHeartbeat.begin(this.#client, id, options)
  }

  /** The nodes, for a controller that acts when the heartbeat of one stops. */
  readonly nodes = {
    watch: (options?: NodesWatchOptions): NodesWatch => new NodesWatch(this.#client, options),
  }
}
