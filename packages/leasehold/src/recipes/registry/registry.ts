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
 * An instance is a claim on its own key, `services/<service>/<id>`, that describes it, under a
 * lease that its process renews. It is found while that lease lives: it leaves at once when it is
 * released or revoked, and after its ttl if its process died.
 *
 * **Promised.** A registered instance is found by everyone who can reach the store. One id stands
 * for one registration at a time. Nothing written into one entry harms readers of the others.
 *
 * **Not promised.** A found instance may not answer: a process can be dead for up to its ttl before
 * anybody knows. Use health checks, and let callers retry.
 */
export class Registry {
  readonly #client: Client
  readonly #probes: ProbeMaker

  /** `probes` creates the probe that uses the network. */
  constructor(client: Client, probes: ProbeMaker) {
    this.#client = client
    this.#probes = probes
  }

  /** Registers an instance and keeps it registered until it is released. */
  register(service: string, options: RegisterOptions): Promise<Registration> {
    return Registration.begin(this.#client, service, options)
  }

  /** What a registration writes, for an instance whose lease somebody else renews. */
  entry(service: string, id: string, spec: InstanceSpec): RegistryEntry {
    return entryOf(service, id, spec)
  }

  /** The value of such an entry after an update. */
  amended(value: string | undefined, update: InstanceUpdate): string {
    return updatedEntry(value, update)
  }

  /** Reads the current instances of a service from the store. */
  find(service: string, filter?: Filter): Promise<readonly Instance[]> {
    return find(this.#client, service, filter)
  }

  /** The names of all services with an instance. */
  services(): Promise<readonly string[]> {
    return services(this.#client)
  }

  /** The instances of a service, kept up to date, for callers that ask repeatedly. */
  watch(service: string, options?: WatchOptions): Discovery {
    return new Discovery(this.#client, keyPart('service', service), options)
  }

  /** Runs the health checks that instances ask for, while this is the active checker. */
  checker(options: CheckerOptions = {}): Checker {
    return new Checker(this.#client, options, this.#probes)
  }

  /** Starts the heartbeat of a node. What is registered through it ends with it. */
  node(id: string, options: NodeOptions = {}): Promise<NodeHeartbeat> {
    return NodeHeartbeat.begin(this.#client, id, options)
  }

  /** For a controller that acts when the heartbeat of a node stops. */
  readonly nodes = {
    watch: (options?: NodesWatchOptions): NodesWatch => new NodesWatch(this.#client, options),
  }
}
