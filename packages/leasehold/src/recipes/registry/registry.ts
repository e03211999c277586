import { type CallOptions, type Client, timeoutIn } from '../../client/index.ts'
import type { Claim, Key } from '../../port/index.ts'
import { keyPart } from '../arguments.ts'
import { targetOf } from './check/check-policy.ts'
import { Checker, type CheckerOptions, probeSettingsOf } from './checker/checker.ts'
import type { ProbeLoader } from './checker/probe.ts'
import { Catalog, type CatalogOptions } from './discovery/catalog.ts'
import { Discovery, type WatchOptions } from './discovery/discovery.ts'
import { find, services } from './discovery/find.ts'
import { type InstanceSpec, parseDescription } from './instance/description.ts'
import { entryOf, type InstanceUpdate, type RegistryEntry, updatedEntry } from './instance/entry.ts'
import {
  detailsOf,
  type Filter,
  type Instance,
  type InstanceDetails,
  partsOfKey,
} from './instance/instance.ts'
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
  readonly #probes: ProbeLoader

  /** `probes` loads the code that uses the network. */
  constructor(client: Client, probes: ProbeLoader) {
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

  /** The instance that a claim describes, with the parts of its status; `undefined` if it is invalid. */
  details(entry: Claim, results: readonly Claim[]): InstanceDetails | undefined {
    return detailsOf(entry, results)
  }

  /** Reads the current instances of a service from the store. */
  find(service: string, filter?: Filter, options?: CallOptions): Promise<readonly Instance[]> {
    return find(this.#client.limitedTo(timeoutIn('find', options)), service, filter)
  }

  /** The names of all services with an instance. */
  services(options?: CallOptions): Promise<readonly string[]> {
    return services(this.#client.limitedTo(timeoutIn('services', options)))
  }

  /** The instances of a service, kept up to date, for callers that ask repeatedly. */
  watch(service: string, options?: WatchOptions): Discovery {
    return new Discovery(this.#client, keyPart('service', service), options)
  }

  /** The instances of all services, kept up to date, for gateways and dashboards. */
  watchAll(options?: CatalogOptions): Catalog {
    return new Catalog(this.#client, options)
  }

  /** Runs the health checks that instances ask for, while this is the active checker. */
  checker(options: CheckerOptions = {}): Checker {
    return new Checker(this.#client, options, this.#probes)
  }

  /**
   * Why a checker with these options would never run the check in this value of a claim; `undefined`
   * if it would, or if there is none. It refuses an unknown host name like one whose address is not
   * allowed, so the answer does not reveal internal names. With `resolves: false` it accepts names.
   */
  async checkRefusal(
    key: Key,
    value: string | undefined,
    options: CheckerOptions,
    { resolves = true }: { readonly resolves?: boolean } = {},
  ): Promise<string | undefined> {
    const parts = partsOfKey(key)
    const url = parts && parseDescription(value)?.check?.url
    if (url === undefined || options.probe !== undefined) return undefined
    if (options.service !== undefined && options.service !== parts?.service) return undefined
    const { networkRefusal } = await this.#probes()
    return networkRefusal(targetOf('check', url), probeSettingsOf(options), resolves)
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
