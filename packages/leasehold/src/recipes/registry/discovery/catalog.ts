import { type Client, Emitter } from '../../../client/index.ts'
import { type Event, type Key, knownNames } from '../../../port/index.ts'
import { optionsOf } from '../../arguments.ts'
import { onAbort } from '../../sleep.ts'
import { type BrakeOptions, brakeLimits } from '../brake.ts'
import { partsOfKey, servicesKey } from '../instance/instance.ts'
import { Discovery, type WatchEvents } from './discovery.ts'
import { RegistryViews, type SourceChanged, sourceOn } from './source.ts'

export interface CatalogOptions {
  /** The brake on mass eviction, for each service; `false` for none. */
  readonly brake?: BrakeOptions | false | undefined
}

const CATALOG_OPTIONS = knownNames<CatalogOptions>({ brake: true })

interface Known {
  readonly discovery: Discovery
  /** The keys that are claimed now. */
  readonly keys: Set<Key>
  changed: SourceChanged
}

/**
 * The instances of all services, kept up to date, with a brake for each service. All services
 * together cost two watches of the store. Otherwise it is what `Discovery` is for one service.
 */
export class Catalog implements Disposable {
  readonly #client: Client
  readonly #options: CatalogOptions
  readonly #views: RegistryViews
  readonly #services = new Map<string, Known>()
  readonly #events = new Emitter<WatchEvents>({ joined: true, changed: true, left: true })
  readonly #ready: Promise<void>
  readonly #stopListening: () => void
  #isReady = false
  #closed = false

  constructor(client: Client, options: CatalogOptions = {}) {
    this.#client = client
    this.#options = optionsOf('registry.watchAll', options, CATALOG_OPTIONS)
    // An invalid brake is refused now, and not when the first service appears.
    brakeLimits(options.brake)
    this.#views = new RegistryViews(client, '', (keys, ended) => this.#route(keys, ended))
    this.#ready = this.#views.ready.then(async () => {
      this.#isReady = true
      this.#route(new Set(this.#views.services.keys()), [])
      await Promise.all([...this.#services.values()].map(({ discovery }) => discovery.ready))
    })
    this.#ready.catch(() => {})
    this.#stopListening = onAbort([client.closing], () => this.close())
  }

  /** Resolves when all instances of all services are known; rejects if it is closed before. */
  get ready(): Promise<void> {
    return this.#client.awaited(this.#ready)
  }

  /** The names of all services with an instance, whatever its status, sorted. */
  get services(): readonly string[] {
    const named = [...this.#services].filter(([, { discovery }]) => discovery.all.length > 0)
    return named.map(([name]) => name).sort()
  }

  /** The discovery of a service; `undefined` if it has no instance. It closes when it has none left. */
  discovery(service: string): Discovery | undefined {
    return this.#services.get(service)?.discovery
  }

  /** Whether events of the store arrive. */
  get live(): boolean {
    return this.#views.live
  }

  /** Milliseconds since the store was last heard from: how stale this may be. */
  age(): number {
    return this.#views.age()
  }

  /** Reports changes of the instances of all services, whatever their status. */
  on<Type extends keyof WatchEvents>(
    type: Type,
    listener: (change: WatchEvents[Type]) => void,
  ): () => void {
    return this.#events.on(type, listener)
  }

  close(): void {
    this.#closed = true
    this.#stopListening()
    for (const { discovery } of this.#services.values()) discovery.close()
    this.#services.clear()
    this.#views.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  #route(keys: ReadonlySet<Key>, ended: readonly Event[]): void {
    if (!this.#isReady || this.#closed) return
    const byService = new Map<string, Set<Key>>()
    for (const key of keys) {
      const parts = partsOfKey(key)
      if (parts === undefined) continue
      const { service, id } = parts
      const entryKey = servicesKey(service, id)
      const isClaimed = this.#views.entry(service, id) !== undefined
      if (isClaimed) this.#known(service).keys.add(entryKey)
      else this.#services.get(service)?.keys.delete(entryKey)
      const changed = byService.get(service)
      if (changed === undefined) byService.set(service, new Set([key]))
      else changed.add(key)
    }
    for (const [service, changed] of byService) {
      this.#services.get(service)?.changed(changed, ended)
      this.#forgetIfEmpty(service)
    }
  }

  #known(service: string): Known {
    const present = this.#services.get(service)
    if (present !== undefined) return present
    const keys = new Set<Key>()
    let changed: SourceChanged = () => {}
    const options = { status: 'any', brake: this.#options.brake } as const
    const discovery = new Discovery(this.#client, service, options, (listener) => {
      changed = listener
      return sourceOn(this.#views, service, { keys: () => keys, close: () => {} })
    })
    discovery.on('joined', (change) => this.#events.emit('joined', change))
    discovery.on('changed', (change) => this.#events.emit('changed', change))
    discovery.on('left', (change) => {
      this.#forgetIfEmpty(service)
      this.#events.emit('left', change)
    })
    const known = { discovery, keys, changed }
    this.#services.set(service, known)
    return known
  }

  /** An instance that the brake holds back has no key any more, but is still shown. */
  #forgetIfEmpty(service: string): void {
    const known = this.#services.get(service)
    if (known === undefined || known.keys.size > 0 || known.discovery.all.length > 0) return
    this.#services.delete(service)
    known.discovery.close()
  }
}
