import { isIP } from 'node:net'
import type { CheckStatus, InstanceDetails, InstanceSpec, Registry } from 'leasehold'
import { parseEndpoint } from '../../registry-view/index.ts'
import type { CheckType, StoredCheck } from './check.ts'
import type { ServiceDefinition } from './definition.ts'

/** A service of the registry, as the Consul API shows it. */
export interface Service extends Omit<ServiceDefinition, 'checks'> {
  readonly checks: readonly ShownCheck[]
  /** What a client of this API registered; `undefined` if the library or another gateway did. */
  readonly own: ServiceDefinition | undefined
  readonly details: InstanceDetails
}

/** A check in an answer. */
export interface ShownCheck extends Pick<StoredCheck, 'id' | 'name' | 'notes' | 'output'> {
  readonly status: CheckStatus
  readonly type: CheckType | ''
  readonly interval: string
  readonly timeout: string
  readonly deregisterAfter?: number | undefined
}

/** What a client registered, kept in the metadata of the instance. */
const OWN = 'consul.service'
const OWN_CHECK = 'consul.check.'
const METADATA_MAX = 1024
const NOTE_MAX = 256
const RANK: Readonly<Record<CheckStatus, number>> = { passing: 0, warning: 1, critical: 2 }
const MAINTENANCE_REASON =
  'Maintenance mode is enabled for this service, but no reason was provided. This is a default message.'

/** The value of the claim of a service. Its own report is the worst of its ttl checks. */
export function instanceEntry(
  registry: Registry,
  service: ServiceDefinition,
  { host, maintenance }: { readonly host: string; readonly maintenance: string | undefined },
): ReturnType<Registry['entry']> {
  const { id, name, tags, address, port, meta, weights, checks } = service
  const { enableTagOverride, taggedAddresses } = service
  const own = JSON.stringify({ address, port, weights, enableTagOverride, taggedAddresses })
  const spec: InstanceSpec = {
    address: addressOf(address || host, port),
    tags,
    weight: weights.Passing,
    metadata: {
      ...meta,
      [OWN]: own,
      ...Object.fromEntries(checks.map((each) => [OWN_CHECK + each.id, storedCheckText(each)])),
    },
    check: checks.find(({ probe }) => probe !== undefined)?.probe,
  }
  const entry = registry.entry(name, id, spec)
  const ttls = checks.filter(({ type }) => type === 'ttl')
  const worst = ttls.reduce<StoredCheck | undefined>(
    (a, b) => (a && RANK[a.status] >= RANK[b.status] ? a : b),
    undefined,
  )
  const update = {
    ...(worst && { status: worst.status, note: noteOf(worst.output) }),
    ...(maintenance !== undefined && { maintenance: noteOf(maintenance) }),
  }
  return { ...entry, value: registry.amended(entry.value, update) }
}

/** The service that an instance of the registry is for clients of Consul. */
export function serviceOf(details: InstanceDetails): Service {
  const { id, service: name, tags, metadata, weight } = details
  const own = ownOf(details)
  if (own !== undefined) return { ...own, checks: checksOf(details, own.checks), own, details }
  const endpoint = parseEndpoint(details.address)
  const share = Math.max(1, Math.round(weight))
  return {
    ...{ id, name, tags, meta: metadata, own, details },
    address: endpoint?.host ?? details.address ?? '',
    port: endpoint?.port ?? 0,
    weights: { Passing: share, Warning: share },
    enableTagOverride: false,
    taggedAddresses: {},
    checks: checksOf(details, []),
  }
}

export function worstOf(checks: readonly ShownCheck[]): CheckStatus {
  return checks.reduce<CheckStatus>((a, { status: b }) => (RANK[b] > RANK[a] ? b : a), 'passing')
}

export function maintenanceId(id: string): string {
  return `_service_maintenance:${id}`
}

/** In the order in which Consul shows them. */
export function byCheckId(a: { readonly id: string }, b: { readonly id: string }): number {
  return a.id < b.id ? -1 : 1
}

function ownOf({ id, service, tags, metadata }: InstanceDetails): ServiceDefinition | undefined {
  const text = metadata[OWN]
  if (text === undefined) return undefined
  try {
    const stored = JSON.parse(text) as Omit<ServiceDefinition, 'id' | 'name' | 'tags' | 'meta'>
    const names = Object.keys(metadata)
    const meta = names.filter((name) => name !== OWN && !name.startsWith(OWN_CHECK))
    const checks = names.flatMap((name) =>
      name.startsWith(OWN_CHECK) ? [JSON.parse(metadata[name]!) as StoredCheck] : [],
    )
    const kept = Object.fromEntries(meta.map((name) => [name, metadata[name]!]))
    return { ...stored, id, name: service, tags, meta: kept, checks }
  } catch {
    return undefined
  }
}

/**
 * A ttl check has its own status, one over the network that of the checker. What else makes the
 * instance unhealthy is a check of its own: maintenance, a report of the library, a drain.
 */
function checksOf(details: InstanceDetails, stored: readonly StoredCheck[]): ShownCheck[] {
  const { id, health, report, maintenance, check } = details
  const checks: ShownCheck[] = stored.map((each) =>
    each.probe !== undefined && health !== undefined
      ? { ...each, status: health.status, output: health.note }
      : each,
  )
  const plain = { type: '', notes: '', interval: '', timeout: '' } as const
  const isExplained = stored.some(({ probe }) => probe !== undefined)
  const isReported = stored.length === 0 && report !== undefined
  if (!isExplained && (health !== undefined || isReported || check !== undefined)) {
    const status = statusIn(details)
    const output = (status === report?.status ? report.note : health?.note) ?? ''
    checks.push({ ...plain, id: `leasehold:${id}`, name: 'Leasehold health', status, output })
  }
  if (maintenance !== undefined) {
    const name = 'Service Maintenance Mode'
    const notes = maintenance || MAINTENANCE_REASON
    checks.push({
      ...{ ...plain, id: maintenanceId(id), name, notes },
      ...{ type: 'maintenance', status: 'critical', output: '' },
    })
  }
  return checks.sort(byCheckId)
}

/** The worse of the report and the check result of an instance. */
function statusIn({ report, health, check }: InstanceDetails): CheckStatus {
  const own = report?.status ?? 'passing'
  const checked = health?.status ?? check?.initially ?? 'passing'
  return RANK[checked] > RANK[own] ? checked : own
}

function addressOf(host: string, port: number): string {
  const shown = isIP(host) === 6 ? `[${host}]` : host
  return port === 0 ? shown : `${shown}:${port}`
}

/** The output is cut until the check fits. */
function storedCheckText(check: StoredCheck): string {
  // Metadata has no control characters, and JSON leaves some as they are.
  const text = JSON.stringify(check).replace(/\p{Cc}/gu, ' ')
  if (text.length <= METADATA_MAX || check.output === '') return text
  const excess = Math.max(text.length - METADATA_MAX, 1)
  const output = check.output.slice(0, Math.max(0, check.output.length - excess)).toWellFormed()
  return storedCheckText({ ...check, output })
}

function noteOf(output: string): string {
  const clean = output.replace(/\p{Cc}+/gu, ' ')
  return clean.slice(0, NOTE_MAX).toWellFormed()
}
