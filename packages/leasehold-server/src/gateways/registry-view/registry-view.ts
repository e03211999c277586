import {
  type BrakeOptions,
  type Catalog,
  type Instance,
  Leasehold,
  type Registry,
  SERVICES,
  servicesKey,
} from 'leasehold'
import type { Clock, LeaseStore, Random } from 'leasehold/port'
import type { Logger } from 'pino'
import { allowsKey, forbidden, type Principal } from '../../access/index.ts'
import { type Endpoint, parseEndpoint } from './endpoint.ts'

export interface RegistryViewOptions {
  /** The store itself: gateways filter what they show by the rights of their callers. */
  readonly store: LeaseStore
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly brake?: BrakeOptions | undefined
}

/** An instance as gateways show it. */
export interface ServiceInstance extends Instance {
  /** Where it listens; `undefined` if its address names no host. */
  readonly endpoint: Endpoint | undefined
}

/** The instances of one service at one revision. */
export interface Service {
  readonly name: string
  readonly revision: number
  /** All of them, sorted by id. */
  readonly all: readonly ServiceInstance[]
  /** Those that consumers may use: passing, warning, and those that the brake holds back. */
  readonly serving: readonly ServiceInstance[]
}

/** Called after something changed, with the names of the changed services. */
export type ViewListener = (changed: ReadonlySet<string>) => void

/**
 * What all gateways show: the instances of all services, kept up to date by one pair of watches.
 *
 * **Promised.** A released or revoked instance is gone with the event that says so. An expired one
 * too, unless so many expired at once that the brake holds it back, for at most its `hold`. While
 * the store cannot be reached, the view shows what it knew. `revision` rises with each change, so an
 * answer made at a revision is current as long as the revision is.
 */
export class RegistryView {
  /** Rises with each change. Starts at the time in milliseconds, so that it also rises across a restart. */
  #revision: number
  readonly #leasehold: Leasehold
  readonly #clock: Clock
  readonly #catalog: Catalog
  readonly #services = new Map<string, Service>()
  readonly #listeners = new Set<ViewListener>()
  #changed = new Set<string>()
  #isReporting = false
  /** An instance stays the same object until it changes. */
  readonly #shown = new WeakMap<Instance, ServiceInstance>()

  private constructor(leasehold: Leasehold, { clock, brake }: RegistryViewOptions) {
    this.#leasehold = leasehold
    this.#clock = clock
    this.#revision = Math.floor(clock.now())
    this.#catalog = leasehold.registry.watchAll({ brake })
    for (const type of ['joined', 'changed', 'left'] as const) {
      this.#catalog.on(type, ({ instance }) => this.#onChange(instance.service))
    }
  }

  /** Resolves when all instances are known: a gateway that knew half of them would evict the rest. */
  static async open(options: RegistryViewOptions): Promise<RegistryView> {
    const { store, clock, random, log } = options
    const holder = `leasehold-gateways:${process.pid}`
    const leasehold = await Leasehold.open(store, { holder, clock, random, logger: log })
    const view = new RegistryView(leasehold, options)
    try {
      await view.#catalog.ready
      return view
    } catch (error) {
      await view.close()
      throw error
    }
  }

  get revision(): number {
    return this.#revision
  }

  /** For what registrations write. */
  get registry(): Registry {
    return this.#leasehold.registry
  }

  /** Whether changes of the store arrive. */
  get live(): boolean {
    return this.#catalog.live
  }

  /** The names of all services with an instance, sorted. */
  get services(): readonly string[] {
    return this.#catalog.services
  }

  /** A service; `undefined` if it has no instance. */
  service(name: string): Service | undefined {
    const known = this.#services.get(name)
    if (known !== undefined) return known
    const instances = this.#catalog.discovery(name)?.all ?? []
    if (instances.length === 0) return undefined
    const all = instances.map((instance) => this.#show(instance))
    const service = { name, revision: this.#revision, all, serving: all.filter(isServing) }
    this.#services.set(name, service)
    return service
  }

  /** Reports changes, all changes of one turn in one call. Returns how to stop. */
  onChange(listener: ViewListener): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  async close(): Promise<void> {
    this.#listeners.clear()
    await this.#leasehold.close()
  }

  #show(instance: Instance): ServiceInstance {
    const known = this.#shown.get(instance)
    if (known !== undefined) return known
    const shown = { ...instance, endpoint: parseEndpoint(instance.address) }
    this.#shown.set(instance, shown)
    return shown
  }

  #onChange(service: string): void {
    this.#revision++
    this.#services.delete(service)
    this.#changed.add(service)
    if (this.#isReporting) return
    this.#isReporting = true
    this.#clock.defer(() => {
      const changed = this.#changed
      this.#changed = new Set()
      this.#isReporting = false
      for (const listener of this.#listeners) listener(changed)
    })
  }
}

/**
 * Refuses a caller that may read no instance at all. An empty list would make consumers drop what
 * they know; after a refusal they keep it.
 */
export function demandReader({ name, rights }: Pick<Principal, 'name' | 'rights'>): void {
  const mayRead = rights.some(
    ({ verbs, prefix }) =>
      verbs.includes('read') && (prefix.startsWith(SERVICES) || SERVICES.startsWith(prefix)),
  )
  if (!mayRead) throw forbidden(name, 'read', SERVICES)
}

/** The instances that the rights of a caller cover. */
export function visibleTo<Shown extends Instance>(
  { rights }: Pick<Principal, 'rights'>,
  instances: readonly Shown[],
): readonly Shown[] {
  return instances.filter(({ service, id }) => allowsKey(rights, 'read', servicesKey(service, id)))
}

function isServing({ status }: Instance): boolean {
  return status === 'passing' || status === 'warning' || status === 'lapsed'
}
