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

type Instances = ReadonlySet<ServiceInstance>

/**
 * The instances of a service by the labels of their tags, of their zones, and of themselves, and the
 * label of each. It is made once for each change: a flood of names that do not exist must be cheap.
 */
interface Index {
  readonly tag: ReadonlyMap<string, Instances>
  readonly zone: ReadonlyMap<string, Instances>
  readonly instance: ReadonlyMap<string, Instances>
  readonly labels: ReadonlyMap<ServiceInstance['id'], string>
}

type Selection = Exclude<keyof Index, 'labels'>
const SELECTIONS: ReadonlySet<string> = new Set<Selection>(['tag', 'zone', 'instance'])

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
  readonly #indexes = new WeakMap<Service, Index>()

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
    const index = this.#indexOf(service)
    const selected: Instances[] = []
    while (labels.length > 0) {
      const kind = labels.pop()!
      if (!SELECTIONS.has(kind) || selected.length === SELECTIONS_MAX) return MISSING
      const label = labels.pop()
      // `tag.embedder.leasehold` has names below it, but no records.
      if (label === undefined) return NO_DATA
      const found = index[kind as Selection].get(label)
      if (found === undefined) return MISSING
      selected.push(found)
    }
    const isSelected = (instance: ServiceInstance) => selected.every((each) => each.has(instance))
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
    const label = this.#indexOf(this.#view.service(instance.service)!).labels.get(instance.id)
    return `${label}.instance.${this.#serviceLabel(instance.service)}.${DOMAIN}`
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

  #indexOf(service: Service): Index {
    const known = this.#indexes.get(service)
    if (known !== undefined) return known
    const byLabel = uniqueLabels(service.all.map(({ id }) => id))
    const labels = new Map([...byLabel].map(([label, id]) => [id, label]))
    const index: Index = {
      tag: grouped(service.all, ({ tags }) => tags.map(labelOf)),
      zone: grouped(service.all, ({ zone }) => (zone === undefined ? [] : [labelOf(zone)])),
      instance: grouped(service.all, ({ id }) => [labels.get(id)!]),
      labels,
    }
    this.#indexes.set(service, index)
    return index
  }
}

function grouped(
  instances: readonly ServiceInstance[],
  labelsOf: (instance: ServiceInstance) => readonly string[],
): ReadonlyMap<string, Instances> {
  const groups = new Map<string, Set<ServiceInstance>>()
  for (const instance of instances) {
    for (const label of labelsOf(instance)) {
      const group = groups.get(label)
      if (group === undefined) groups.set(label, new Set([instance]))
      else group.add(instance)
    }
  }
  return groups
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
