import {
  invalid,
  type Key,
  knownNames,
  type LeaseId,
  show,
  type Time,
  type Token,
} from '../../../port/index.ts'
import { objectOf, oneOf, stringOf } from '../../arguments.ts'
import { CHECK_STATUSES, type CheckStatus } from '../check/check.ts'
import { type Description, NOTE_MAX, parseDescription } from './description.ts'

/**
 * - `passing`, `warning`: it is used. A warning is for people.
 * - `critical`: its check fails, or it reports so. It is not used.
 * - `lapsed`: its lease expired, but it is still shown because many others of its service vanished
 *   too: see `Brake`. Used only on request.
 * - `maintenance`: somebody has taken it out of service. Never used.
 */
const STATUSES = ['passing', 'warning', 'critical', 'lapsed', 'maintenance'] as const

export type Status = (typeof STATUSES)[number]

/** An instance of a service, as discovery shows it. */
export interface Instance
  extends Omit<Description, 'check' | 'report' | 'maintenance' | 'load' | 'node'> {
  readonly service: string
  readonly id: string
  readonly status: Status
  /** The reason for the status, if somebody gave one. */
  readonly note: string | undefined
  readonly load: number | undefined
  readonly node: string | undefined
  /** The client that registered it, its lease, and the token of its claim. */
  readonly holder: string
  readonly lease: LeaseId
  readonly token: Token
  readonly since: Time
}

/** The check result of one instance, as its checker publishes it. */
export interface Health {
  readonly status: CheckStatus
  readonly note: string
  /** The token of the checked registration. A result for another token does not count. */
  readonly of: Token
}

/** The prefix of all instances. */
export const SERVICES = 'services/'
export const servicesKey = (service: string, id = ''): Key => `${SERVICES}${service}/${id}`
/** The prefix of all health results. */
export const HEALTH = 'health/'
export const healthKey = (service: string, id = ''): Key => `${HEALTH}${service}/${id}`

/** The service and the id in a registry key; `undefined` for other keys. */
export function partsOfKey(
  key: Key,
): { readonly service: string; readonly id: string } | undefined {
  const parts = key.split('/')
  const [, service, id] = parts
  return parts.length === 3 && service && id ? { service, id } : undefined
}

/** The fields of a claim that the registry reads. */
export interface Entry {
  readonly key: Key
  readonly token: Token
  readonly lease: LeaseId
  readonly holder: string
  readonly value?: string | undefined
  readonly claimedAt: Time
}

/** The note is cleaned and shortened, because it may contain any error message. */
export function healthJson({ status, note, of }: Health): string {
  const clean = note
    .replace(/\p{Cc}+/gu, ' ')
    .slice(0, NOTE_MAX)
    .toWellFormed()
  return JSON.stringify({ status, note: clean, of })
}

/**
 * The health result that counts: the newest claim. A checker that took over has a higher token than
 * the previous one, whose last result may stay for a while.
 */
export function newestHealth(places: readonly Entry[]): Health | undefined {
  const json = places.at(-1)?.value
  if (json === undefined || json.length > 4 * NOTE_MAX) return undefined
  try {
    const { status, note, of } = objectOf('health', JSON.parse(json))
    if (typeof of !== 'number') return undefined
    const known = oneOf('status', status, CHECK_STATUSES)
    return { status: known, note: note === '' ? '' : stringOf('note', note, NOTE_MAX), of }
  } catch {
    return undefined
  }
}

/** The instance that a claim describes, with its check result; `undefined` for an invalid entry. */
export function instanceOf(entry: Entry, health: Health | undefined): Instance | undefined {
  const parts = partsOfKey(entry.key)
  const description = parseDescription(entry.value)
  if (parts === undefined || description === undefined) return undefined
  const { check: _, report: __, maintenance: ___, load, node, ...shown } = description
  const { token, lease, holder, claimedAt: since } = entry
  const condition = statusOf(description, health?.of === token ? health : undefined)
  return { ...parts, ...shown, ...condition, load, node, holder, lease, token, since }
}

/** An instance with each part of its status, for gateways that show them one by one. */
export interface InstanceDetails
  extends Instance,
    Pick<Description, 'check' | 'report' | 'maintenance'> {
  /** The result of its check; `undefined` if there is none for this registration. */
  readonly health: Health | undefined
}

/** The details of an instance, from its claim and the health results of its key. */
export function detailsOf(entry: Entry, results: readonly Entry[]): InstanceDetails | undefined {
  const health = newestHealth(results)
  const instance = instanceOf(entry, health)
  if (instance === undefined) return undefined
  const { check, report, maintenance } = parseDescription(entry.value)!
  const current = health?.of === entry.token ? health : undefined
  return { ...instance, check, report, maintenance, health: current }
}

const RANK: Record<CheckStatus, number> = { passing: 0, warning: 1, critical: 2 }

/** The worse of its own report and its check result, unless it is in maintenance. */
export function statusOf(
  { report, check, maintenance }: Description,
  health: Health | undefined,
): { readonly status: Status; readonly note: string | undefined } {
  if (maintenance !== undefined) return { status: 'maintenance', note: maintenance || undefined }
  const own = { status: report?.status ?? 'passing', note: report?.note || undefined } as const
  const checked =
    health === undefined
      ? { status: check?.initially ?? own.status, note: undefined }
      : { status: health.status, note: health.note || undefined }
  return RANK[checked.status] > RANK[own.status] ? checked : own
}

export function isHealthy({ status }: Instance): boolean {
  return status === 'passing' || status === 'warning'
}

/** Selects instances that match all given conditions. */
export interface Filter {
  /** One capability, or several that it must have. */
  readonly capability?: string | readonly string[] | undefined
  /** Tags that it must have. */
  readonly tags?: readonly string[] | undefined
  readonly zone?: string | undefined
  /** Default: `passing` and `warning`. */
  readonly status?: Status | readonly Status[] | 'any' | undefined
}

export const FILTER_NAMES = knownNames<Filter>({
  capability: true,
  tags: true,
  zone: true,
  status: true,
})

export type Wanted = (instance: Instance) => boolean

/** Splits a filter in two: whether the kind of instance matches, and whether the status does. */
export function wantedBy(filter: Filter = {}): { readonly kind: Wanted; readonly status: Wanted } {
  objectOf('the filter', filter)
  const { zone, status } = filter
  const capabilities = listOf('capability', filter.capability)
  const tags = listOf('tags', filter.tags)
  if (zone !== undefined && typeof zone !== 'string') {
    throw invalid(`zone is ${show(zone)}: it must be a string`)
  }
  const kind: Wanted = (instance) =>
    (zone === undefined || instance.zone === zone) &&
    capabilities.every((capability) => instance.capabilities.includes(capability)) &&
    tags.every((tag) => instance.tags.includes(tag))
  if (status === undefined) return { kind, status: isHealthy }
  if (status === 'any') return { kind, status: () => true }
  const statuses = listOf('status', status).map((one) => oneOf('status', one, STATUSES))
  return { kind, status: (instance) => statuses.includes(instance.status) }
}

function listOf(name: string, value: string | readonly string[] | undefined): readonly string[] {
  if (value === undefined) return []
  if (typeof value === 'string') return [value]
  if (Array.isArray(value) && value.every((entry) => typeof entry === 'string')) return value
  throw invalid(`${name} is ${show(value)}: give a string or an array of strings`)
}

/** The same order in every process, so that round-robin is the same too. */
export function byId(a: Instance, b: Instance): number {
  return a.id < b.id ? -1 : 1
}
