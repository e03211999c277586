import { type InstanceView, isHealthy, type ServiceView } from './services.ts'

export type ShownStatus = InstanceView['status'] | 'drained'

export const STATUSES: readonly ShownStatus[] = [
  ...(['passing', 'warning', 'critical', 'lapsed', 'maintenance', 'drained'] as const),
]

export type Order = 'name' | 'unhealthy' | 'size'

export interface ServiceFilter {
  /** Part of a name, an id, a holder, an address or a zone. */
  readonly text: string
  /** An instance has one of these statuses; every status if there is none. */
  readonly statuses: ReadonlySet<ShownStatus>
  /** A tag or a capability. */
  readonly tag: string
  readonly order: Order
}

const BY_NAME = new Intl.Collator('en', { numeric: true })

/** A service with the instances that match. */
export interface FoundService {
  readonly service: ServiceView
  readonly instances: readonly InstanceView[]
}

/** A drained instance is shown as drained, whatever its checks say. */
export function shownStatus({ drainedBy, status }: InstanceView): ShownStatus {
  return drainedBy === undefined ? status : 'drained'
}

/** All tags and capabilities, by name. */
export function tagsOf(services: readonly ServiceView[]): string[] {
  const tags = new Set<string>()
  for (const { instances } of services) {
    for (const { tags: own, capabilities } of instances) {
      for (const tag of own) tags.add(tag)
      for (const word of capabilities) tags.add(word)
    }
  }
  return [...tags].sort()
}

/** The services with a matching instance, in order. The name of a service matches all of them. */
export function findServices(
  services: readonly ServiceView[],
  { text, statuses, tag, order }: ServiceFilter,
): FoundService[] {
  const wanted = text.trim().toLowerCase()
  const found = services.flatMap((service): FoundService[] => {
    const isNamed = service.name.toLowerCase().includes(wanted)
    const instances = service.instances.filter(
      (it) =>
        (statuses.size === 0 || statuses.has(shownStatus(it))) &&
        (tag === '' || it.tags.includes(tag) || it.capabilities.includes(tag)) &&
        (isNamed || textOf(it).includes(wanted)),
    )
    return instances.length === 0 ? [] : [{ service, instances }]
  })
  // As people count: service-2 before service-10.
  found.sort((a, b) => BY_NAME.compare(a.service.name, b.service.name))
  if (order === 'size') found.sort((a, b) => b.instances.length - a.instances.length)
  if (order === 'unhealthy') found.sort((a, b) => unhealthy(b) - unhealthy(a))
  return found
}

function unhealthy({ service: { instances } }: FoundService): number {
  return instances.filter((it) => !isHealthy(it)).length
}

function textOf({ id, holder, address, zone, node }: InstanceView): string {
  return `${id}\n${holder}\n${address ?? ''}\n${zone ?? ''}\n${node ?? ''}`.toLowerCase()
}
