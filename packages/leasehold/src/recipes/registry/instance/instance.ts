import {
  invalid,
  type Key,
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
 * - `critical`: its check fails, or it says so itself. It is not used.
 * - `lapsed`: its lease has ended without a word, and it is still shown for a while because many
 *   others of its service vanished with it: see `Brake`. Not used unless asked for.
 * - `maintenance`: somebody has taken it out for now. Not used at all.
 */
const STATUSES = ['passing', 'warning', 'critical', 'lapsed', 'maintenance'] as const

export type Status = (typeof STATUSES)[number]

/** An instance of a service, as discovery shows it. */
export interface Instance
  extends Omit<Description, 'check' | 'report' | 'maintenance' | 'load' | 'node'> {
  readonly service: string
  readonly id: string
  readonly status: Status
  /** Why it has this status, in words, where somebody has written so. */
  readonly note: string | undefined
  readonly load: number | undefined
  readonly node: string | undefined
  /** The client that registered it, its lease, and the token of its claim. */
  readonly holder: string
  readonly lease: LeaseId
  readonly token: Token
  readonly since: Time
}

/** The result of checks of one instance, as a checker writes it down for everyone. */
export interface Health {
  readonly status: CheckStatus
  readonly note: string
  /** The token of the registration that was checked: another one's result means nothing. */
  readonly of: Token
}

/** All instances register under this. */
export const SERVICES = 'services/'
export const servicesKey = (service: string, id = ''): Key => `${SERVICES}${service}/${id}`
export const healthKey = (service: string, id = ''): Key => `health/${service}/${id}`

/** The service and the id in a key of the registry; nothing where it is none of its keys. */
export function partsOfKey(
  key: Key,
): { readonly service: string; readonly id: string } | undefined {
  const parts = key.split('/')
  const [, service, id] = parts
  return parts.length === 3 && service && id ? { service, id } : undefined
}

/** A claim, as far as the registry reads it. */
export interface Entry {
  readonly key: Key
  readonly token: Token
  readonly lease: LeaseId
  readonly holder: string
  readonly value?: string | undefined
  readonly claimedAt: Time
}

/** A note is cut and cleaned here, since it may tell of an error that has any text. */
export function healthJson({ status, note, of }: Health): string {
  const clean = note
    .replace(/\p{Cc}+/gu, ' ')
    .slice(0, NOTE_MAX)
    .toWellFormed()
  return JSON.stringify({ status, note: clean, of })
}

/**
 * The result that counts among the claims on a health key: the newest one, since a checker that took
 * over has a higher token than the one before it, whose last word may stand for a while yet.
 */
export function newestHealth(places: readonly Entry[]): Health | undefined {
  const text = places.at(-1)?.value
  if (text === undefined || text.length > 4 * NOTE_MAX) return undefined
  try {
    const { status, note, of } = objectOf('health', JSON.parse(text))
    if (typeof of !== 'number') return undefined
    const known = oneOf('status', status, CHECK_STATUSES)
    return { status: known, note: note === '' ? '' : stringOf('note', note, NOTE_MAX), of }
  } catch {
    return undefined
  }
}

/** The instance that a claim describes, with what its checks have shown; nothing for a bad entry. */
export function instanceOf(entry: Entry, health: Health | undefined): Instance | undefined {
  const parts = partsOfKey(entry.key)
  const description = parseDescription(entry.value)
  if (parts === undefined || description === undefined) return undefined
  const { check: _, report: __, maintenance: ___, load, node, ...shown } = description
  const { token, lease, holder, claimedAt: since } = entry
  const condition = statusOf(description, health?.of === token ? health : undefined)
  return { ...parts, ...shown, ...condition, load, node, holder, lease, token, since }
}

const RANK: Record<CheckStatus, number> = { passing: 0, warning: 1, critical: 2 }

/** The worse of what it says itself and what its checks show, unless it is in maintenance. */
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

/** Which instances are wanted: those that are all of it. */
export interface Filter {
  /** One capability, or several that it must all have. */
  readonly capability?: string | readonly string[] | undefined
  /** Tags that it must all have. */
  readonly tags?: readonly string[] | undefined
  readonly zone?: string | undefined
  /** `passing` and `warning` if not given. */
  readonly status?: Status | readonly Status[] | 'any' | undefined
}

export type Wanted = (instance: Instance) => boolean

/** A filter as two questions: is it of the right kind, and is its status a wanted one. */
export function wantedBy(filter: Filter = {}): { readonly kind: Wanted; readonly status: Wanted } {
  objectOf('the filter', filter)
  const { zone, status } = filter
  const capabilities = listOf('capability', filter.capability)
  const tags = listOf('tags', filter.tags)
  if (zone !== undefined && typeof zone !== 'string') {
    throw invalid(`zone is ${show(zone)}: it must be a text`)
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
  throw invalid(`${name} is ${show(value)}: give a text or an array of texts`)
}

/** The same order everywhere, so that two who count through them count alike. */
export function byId(a: Instance, b: Instance): number {
  return a.id < b.id ? -1 : 1
}
