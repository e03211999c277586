import type { Client, Place, View } from '../../../client/index.ts'
import type { Event, Key } from '../../../port/index.ts'
import {
  HEALTH,
  type Health,
  healthKey,
  newestHealth,
  SERVICES,
  servicesKey,
} from '../instance/instance.ts'

/** Called with the keys that changed and the claims that ended. */
export type SourceChanged = (keys: ReadonlySet<Key>, ended: readonly Event[]) => void

/** Where the discovery of one service gets its entries and their health from. */
export interface Source {
  /** Fulfilled when all entries and all health results are known. */
  readonly ready: Promise<void>
  readonly live: boolean
  age(): number
  /** The keys of all entries of the service. */
  keys(): Iterable<Key>
  entry(id: string): Place | undefined
  health(id: string): Health | undefined
  close(): void
}

/** The entries of services and their health, in two views. */
export class RegistryViews {
  readonly ready: Promise<void>
  readonly services: View
  readonly #health: View

  /** `service` is one service, or '' for all of them. */
  constructor(client: Client, service: string, changed: SourceChanged) {
    const prefixes =
      service === '' ? [SERVICES, HEALTH] : [servicesKey(service), healthKey(service)]
    this.services = client.view(prefixes[0]!, changed)
    this.#health = client.view(prefixes[1]!, (keys) => changed(keys, []))
    // Nothing is shown before both are known: an unhealthy instance must never look healthy.
    this.ready = Promise.all([this.services.ready, this.#health.ready]).then(() => {})
    // Callers that do not await it need not catch it.
    this.ready.catch(() => {})
  }

  get live(): boolean {
    return this.services.live && this.#health.live
  }

  age(): number {
    return Math.max(this.services.age(), this.#health.age())
  }

  entry(service: string, id: string): Place | undefined {
    return this.services.places(servicesKey(service, id))[0]
  }

  health(service: string, id: string): Health | undefined {
    return newestHealth(this.#health.places(healthKey(service, id)))
  }

  close(): void {
    this.services.close()
    this.#health.close()
  }
}

/** A source with views of its own. */
export function ownSource(client: Client, service: string, changed: SourceChanged): Source {
  const views = new RegistryViews(client, service, changed)
  return sourceOn(views, service, {
    keys: () => views.services.keys(),
    close: () => views.close(),
  })
}

/** The part of one service in views that others may share. */
export function sourceOn(
  views: RegistryViews,
  service: string,
  { keys, close }: Pick<Source, 'keys' | 'close'>,
): Source {
  return {
    ready: views.ready,
    get live() {
      return views.live
    },
    age: () => views.age(),
    keys,
    entry: (id) => views.entry(service, id),
    health: (id) => views.health(service, id),
    close,
  }
}
