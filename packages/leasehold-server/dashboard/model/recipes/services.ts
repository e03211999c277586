import type { Event } from 'leasehold/port'
import type { ClaimRow, Mirror } from '../mirror.ts'
import {
  type Description,
  type Instance,
  instanceOf,
  newestHealth,
  parseDescription,
  type Status,
} from './recipe-functions.ts'

export interface InstanceView extends Instance {
  readonly key: string
  readonly check: Description['check']
  /** Who drained it on a dashboard, if somebody did. */
  readonly drainedBy: string | undefined
}

export interface ServiceView {
  readonly name: string
  readonly instances: readonly InstanceView[]
  readonly healthy: number
}

/** A new status of an instance; `gone` if it is not registered. */
export interface StatusChange {
  readonly at: number
  readonly status: Status | 'gone'
  readonly note: string | undefined
}

export function isHealthy({ status }: { readonly status: string }): boolean {
  return status === 'passing' || status === 'warning'
}

/** All services with their instances, by name. */
export function servicesOf(mirror: Mirror): ServiceView[] {
  const services = mirror.internal.find('services')
  return (services?.names?.list() ?? []).flatMap((name) => {
    const instances = instancesOf(mirror, name)
    const healthy = instances.filter(isHealthy).length
    return instances.length === 0 ? [] : [{ name, instances, healthy }]
  })
}

export function instancesOf(mirror: Mirror, service: string): InstanceView[] {
  const node = mirror.internal.find(`services/${service}`)
  return (node?.names?.list() ?? []).flatMap((id) => {
    const claim = mirror.keys.get(`services/${service}/${id}`)?.claims[0]
    const view = claim && viewOf(claim, mirror.keys.get(`health/${service}/${id}`)?.claims ?? [])
    return view === undefined ? [] : [view]
  })
}

interface Read {
  readonly value: string | undefined
  readonly health: string | undefined
  readonly view: InstanceView | undefined
}

/** Parsed instances by claim: of thousands of instances, few change at a time. */
const read = new WeakMap<ClaimRow, Read>()

function viewOf(claim: ClaimRow, health: readonly ClaimRow[]): InstanceView | undefined {
  const { value } = claim
  const newest = health.at(-1)?.value
  const before = read.get(claim)
  if (before !== undefined && before.value === value && before.health === newest) return before.view
  const view = readView(claim, health)
  read.set(claim, { value, health: newest, view })
  return view
}

function readView(claim: ClaimRow, health: readonly ClaimRow[]): InstanceView | undefined {
  const result = newestHealth(health)
  const instance = instanceOf(claim, result)
  if (instance === undefined) return undefined
  const check = parseDescription(claim.value)?.check
  const drainedBy = result?.of === claim.token ? drainerIn(health.at(-1)?.value) : undefined
  return { ...instance, key: claim.key, check, drainedBy }
}

function drainerIn(value: string | undefined): string | undefined {
  try {
    const { drained } = JSON.parse(value ?? '') as { readonly drained?: unknown }
    return typeof drained === 'string' ? drained : undefined
  } catch {
    return undefined
  }
}

const CHANGES_KEPT = 60
const INSTANCES_KEPT = 5000

interface Known {
  claim: ClaimRow | undefined
  readonly health: Map<number, ClaimRow>
  readonly changes: StatusChange[]
}

/** The status changes of each instance, from the received events. */
export class StatusHistory {
  readonly #known = new Map<string, Known>()

  /** The changes of an instance by `service/id`, the oldest first. */
  of(instance: string): readonly StatusChange[] {
    return this.#known.get(instance)?.changes ?? []
  }

  add(event: Event): void {
    const [part, service, id, more] = event.key.split('/')
    if (part !== 'services' && part !== 'health') return
    if (!service || !id || more !== undefined) return
    const known = this.#knownOf(`${service}/${id}`)
    if (part === 'services') this.#addInstance(known, event)
    else if (event.type === 'removed') known.health.delete(event.token)
    else known.health.set(event.token, rowOf(event))
    this.#note(known, event.at)
  }

  #addInstance(known: Known, event: Event): void {
    const isOwn = known.claim?.token === event.token
    if (event.type === 'removed') {
      if (isOwn) known.claim = undefined
    } else if (known.claim === undefined || isOwn) known.claim = rowOf(event)
  }

  #note({ claim, health, changes }: Known, at: number): void {
    const results = [...health.values()].sort((a, b) => a.token - b.token)
    const view = claim && viewOf(claim, results)
    const status = claim === undefined ? 'gone' : (view?.status ?? 'critical')
    const last = changes.at(-1)
    if (last?.status === status && last.note === view?.note) return
    changes.push({ at, status, note: view?.note })
    if (changes.length > CHANGES_KEPT) changes.shift()
  }

  #knownOf(instance: string): Known {
    let known = this.#known.get(instance)
    if (known !== undefined) return known
    known = { claim: undefined, health: new Map(), changes: [] }
    this.#known.set(instance, known)
    if (this.#known.size > INSTANCES_KEPT) {
      const [oldest] = this.#known.keys()
      this.#known.delete(oldest!)
    }
    return known
  }
}

function rowOf({ key, token, lease, holder, mode, value, at }: Event): ClaimRow {
  return { key, token, lease, holder, mode, value, claimedAt: at }
}
