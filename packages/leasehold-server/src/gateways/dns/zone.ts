import type { RegistryView, Service, ServiceInstance } from '../registry-view/index.ts'
import { labelOf, uniqueLabels } from './labels.ts'
import type { ResourceRecord } from './message-writer.ts'

/** The domain of all names. */
export const DOMAIN = 'leasehold'
/** Clients ask again for each use: an answer is true only now. */
const TTL = 0
/** How long a client may remember that a name or a type does not exist, in seconds. */
const NEGATIVE_TTL = 1
/** The most selections in one name, such as `gpu.tag.eu-1.zone.embedder`. */
const SELECTIONS_MAX = 4
const WEIGHT_MAX = 65_535

/** What the zone has for a name. */
export interface Found {
  /** `elsewhere`: the name is not in our domain. */
  readonly existence: 'exists' | 'missing' | 'elsewhere'
  readonly answers: readonly ResourceRecord[]
  /** The addresses of the targets in the answers. */
  readonly glue: readonly ResourceRecord[]
  /** Whether clients use the first answer, so that each should get another one. */
  readonly rotates: boolean
}

const MISSING: Found = { existence: 'missing', answers: [], glue: [], rotates: false }
const NO_DATA: Found = { ...MISSING, existence: 'exists' }
const ELSEWHERE: Found = { ...MISSING, existence: 'elsewhere' }

type Selection = (instance: ServiceInstance) => boolean

/** The instances with the label of a tag, of a zone, or of themselves. */
const SELECTIONS = new Map<string, (label: string, zone: Zone) => Selection>([
  [
    'tag',
    (label) =>
      ({ tags }) =>
        tags.some((tag) => labelOf(tag) === label),
  ],
  [
    'zone',
    (label) =>
      ({ zone }) =>
        zone !== undefined && labelOf(zone) === label,
  ],
  ['instance', (label, zone) => (instance) => zone.labelOfInstance(instance) === label],
])

/**
 * The names of the registry view:
 *
 *     embedder.leasehold                      a service, or _embedder._tcp.leasehold
 *     gpu.tag.embedder.leasehold              its instances with this tag
 *     eu-1.zone.embedder.leasehold            its instances in this zone
 *     i-7.instance.embedder.leasehold         one instance
 */
export class Zone {
  readonly #view: RegistryView
  #index: { readonly revision: number; readonly byLabel: ReadonlyMap<string, string> } | undefined
  readonly #instanceLabels = new WeakMap<Service, ReadonlyMap<string, string>>()

  constructor(view: RegistryView) {
    this.#view = view
  }

  /** The record that goes with a negative answer. */
  get soa(): ResourceRecord {
    const serial = this.#view.revision % 2 ** 32
    return { name: DOMAIN, ttl: NEGATIVE_TTL, data: { type: 'SOA', serial, minimum: NEGATIVE_TTL } }
  }

  find(name: string, type: string): Found {
    const labels = name.split('.')
    if (labels.pop() !== DOMAIN) return ELSEWHERE
    if (labels.length === 0) return this.#apex(type)
    const last = labels.pop()!
    if (last === '_tcp' || last === '_udp') return this.#byProtocol(labels, name, type)
    return this.#inService(this.#service(last), labels, name, type)
  }

  labelOfInstance({ service, id }: ServiceInstance): string {
    const known = this.#view.service(service)
    return (known && this.#labelsOf(known).get(id)) ?? labelOf(id)
  }

  #apex(type: string): Found {
    if (type === 'SOA') return { ...NO_DATA, answers: [this.soa] }
    if (type !== 'NS') return NO_DATA
    const ns = { type: 'NS', target: `ns.${DOMAIN}` } as const
    return { ...NO_DATA, answers: [{ name: DOMAIN, ttl: TTL, data: ns }] }
  }

  /** The form of RFC 2782: `_embedder._tcp.leasehold`. */
  #byProtocol(labels: string[], name: string, type: string): Found {
    const label = labels.pop()
    if (label === undefined) return NO_DATA
    const service = label.startsWith('_') ? this.#service(label.slice(1)) : undefined
    return this.#inService(service, labels, name, type)
  }

  #inService(service: Service | undefined, labels: string[], name: string, type: string): Found {
    if (service === undefined) return MISSING
    const selections: Selection[] = []
    while (labels.length > 0) {
      const select = SELECTIONS.get(labels.pop()!)
      if (select === undefined || selections.length === SELECTIONS_MAX) return MISSING
      const label = labels.pop()
      // `tag.embedder.leasehold` has names below it, but no records.
      if (label === undefined) return NO_DATA
      selections.push(select(label, this))
    }
    const isSelected = (instance: ServiceInstance) => selections.every((select) => select(instance))
    if (!service.all.some(isSelected)) return MISSING
    return this.#records(service.serving.filter(isSelected), name, type)
  }

  #records(instances: readonly ServiceInstance[], name: string, type: string): Found {
    if (type === 'A') return addresses(instances, name, 4)
    if (type === 'AAAA') return addresses(instances, name, 6)
    if (type === 'SRV') return this.#srv(instances, name)
    if (type !== 'ANY') return NO_DATA
    // RFC 8482: an answer to ANY that nobody can use to amplify traffic.
    const data = { type: 'HINFO', cpu: 'RFC8482' } as const
    return { ...NO_DATA, answers: [{ name, ttl: TTL, data }] }
  }

  #srv(instances: readonly ServiceInstance[], name: string): Found {
    const answers: ResourceRecord[] = []
    const glue: ResourceRecord[] = []
    const most = instances.reduce((weight, each) => Math.max(weight, each.weight), 0)
    for (const instance of instances) {
      const { host, family, port } = instance.endpoint ?? {}
      if (host === undefined || port === undefined) continue
      const target = family === 0 ? host.replace(/\.$/, '') : this.#targetOf(instance)
      const weight = scaled(instance.weight, most)
      answers.push({ name, ttl: TTL, data: { type: 'SRV', weight, port, target } })
      if (family !== 0) {
        const type = family === 4 ? 'A' : 'AAAA'
        glue.push({ name: target, ttl: TTL, data: { type, address: host } })
      }
    }
    return { ...NO_DATA, answers, glue }
  }

  #targetOf(instance: ServiceInstance): string {
    return `${this.labelOfInstance(instance)}.instance.${this.#serviceLabel(instance.service)}.${DOMAIN}`
  }

  #service(label: string): Service | undefined {
    const known = this.#serviceLabels().get(label)
    return known === undefined ? undefined : this.#view.service(known)
  }

  #serviceLabel(service: string): string {
    const label = labelOf(service)
    const labels = this.#serviceLabels()
    if (labels.get(label) === service) return label
    for (const [each, name] of labels) if (name === service) return each
    return label
  }

  #serviceLabels(): ReadonlyMap<string, string> {
    const { revision } = this.#view
    if (this.#index?.revision !== revision) {
      this.#index = { revision, byLabel: uniqueLabels(this.#view.services) }
    }
    return this.#index!.byLabel
  }

  /** The label of each id of a service. */
  #labelsOf(service: Service): ReadonlyMap<string, string> {
    const known = this.#instanceLabels.get(service)
    if (known !== undefined) return known
    const byLabel = uniqueLabels(service.all.map(({ id }) => id))
    const labels = new Map([...byLabel].map(([label, id]) => [id, label]))
    this.#instanceLabels.set(service, labels)
    return labels
  }
}

/** Each address once: several instances may share one. */
function addresses(instances: readonly ServiceInstance[], name: string, family: 4 | 6): Found {
  const hosts = instances.flatMap(({ endpoint }) =>
    endpoint?.family === family ? [endpoint.host] : [],
  )
  const type = family === 4 ? 'A' : 'AAAA'
  const answers = [...new Set(hosts)].map((address) => ({
    name,
    ttl: TTL,
    data: { type, address } as const,
  }))
  return { ...NO_DATA, answers, rotates: true }
}

/**
 * The weights of a service in proportion, as far as 16 bits allow. The greatest is 65,535, because
 * HAProxy divides weights by 256 and would see no difference between 1 and 200.
 */
function scaled(weight: number, most: number): number {
  if (most === 0) return 1
  return weight === 0 ? 0 : Math.max(1, Math.round((weight / most) * WEIGHT_MAX))
}
