import { servicesKey } from 'leasehold'
import { allowsOthers, type Principal } from '../../access/index.ts'
import { type RegistryView, type ServiceInstance, visibleTo } from '../registry-view/index.ts'
import { encode } from './messages.ts'
import {
  ASSIGNMENT,
  type Assignment,
  assignmentOf,
  CLUSTER,
  clusterOf,
  encodeAssignment,
  LISTENER,
  listenerOf,
} from './resources.ts'

/** A consumer: what it may see, and the zone that it prefers. */
export interface Consumer {
  readonly principal: Principal
  readonly zone: string
}

/** A thousand consumers of one service get the same bytes, which are made once. */
const KEPT_BYTES_MAX = 32 * 1024 * 1024

/** Makes the answers of xDS from the view. */
export class Answers {
  readonly #view: RegistryView
  /** The answers of the current revision. */
  readonly #kept = new Map<string, Buffer>()
  #keptBytes = 0
  #revision = 0

  constructor(view: RegistryView) {
    this.#view = view
  }

  /** How many bytes of answers are kept for other consumers. */
  get keptBytes(): number {
    return this.#keptBytes
  }

  /** The version of everything. It is also the nonce, so that all consumers get the same bytes. */
  get version(): string {
    return String(this.#view.revision)
  }

  /** The services of which the consumer may see an instance. */
  services({ principal }: Consumer): readonly string[] {
    return this.#view.services.filter((name) => this.#visible(principal, name).all.length > 0)
  }

  assignment({ principal, zone }: Consumer, name: string): Assignment {
    return assignmentOf(name, this.#visible(principal, name).serving, zone)
  }

  /** An encoded response with these resources. */
  response(consumer: Consumer, type: string, names: readonly string[]): Buffer {
    if (type !== ASSIGNMENT) return this.#keep(`${type}\n${names.join('\n')}`, type, names)
    const { principal, zone } = consumer
    const shown = names.map((name) => `${name}\n${this.#visible(principal, name).key}`)
    return this.#keep(`${type}\n${zone}\n${shown.join('\n')}`, type, names, consumer)
  }

  #keep(key: string, type: string, names: readonly string[], consumer?: Consumer): Buffer {
    if (this.#revision !== this.#view.revision || this.#keptBytes > KEPT_BYTES_MAX) {
      this.#kept.clear()
      this.#keptBytes = 0
    }
    this.#revision = this.#view.revision
    const known = this.#kept.get(key)
    if (known !== undefined) return known
    const resources = names.map((name) => ({
      type_url: type,
      value:
        type === LISTENER
          ? listenerOf(name)
          : type === CLUSTER
            ? clusterOf(name)
            : encodeAssignment(this.assignment(consumer!, name)),
    }))
    const { version: version_info } = this
    const message = { version_info, resources, type_url: type, nonce: version_info }
    const made = encode('DiscoveryResponse', message)
    this.#kept.set(key, made)
    this.#keptBytes += key.length + made.length
    return made
  }

  /** What a principal may see of a service. `key` tells apart what different principals see. */
  #visible(principal: Principal, name: string) {
    const { all = [], serving = [] } = this.#view.service(name) ?? {}
    // Most may see all of it, which is cheap to find out.
    if (allowsOthers(principal.rights, 'read', servicesKey(name))) return { all, serving, key: '' }
    const some = visibleTo(principal, serving)
    return { all: visibleTo(principal, all), serving: some, key: `${idsOf(some)} ` }
  }
}

function idsOf(instances: readonly ServiceInstance[]): string {
  return JSON.stringify(instances.map(({ id }) => id))
}
