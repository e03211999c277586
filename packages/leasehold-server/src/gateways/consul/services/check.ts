import type { CheckSpec, CheckStatus } from 'leasehold'
import { ConsulError, decodeFailed, fieldsOf } from '../answer.ts'
import { goDuration, goDurationText } from '../durations.ts'

/** A check as it is stored with its service. */
export interface StoredCheck {
  readonly id: string
  readonly name: string
  readonly notes: string
  readonly type: CheckType
  /** As answers show them. */
  readonly interval: string
  readonly timeout: string
  /** For a ttl check, in milliseconds. */
  readonly ttl?: number | undefined
  /** For a check over the network: what the checker of the registry does. */
  readonly probe?: CheckSpec | undefined
  /** After how many milliseconds in critical state its service is deregistered. */
  readonly deregisterAfter?: number | undefined
  /** Of a check over the network: the status before the first result. */
  readonly status: CheckStatus
  readonly output: string
}

export type CheckType = 'ttl' | 'http' | 'tcp' | 'grpc' | 'maintenance'

export type Fields = Readonly<Record<string, unknown>>

export const STATUSES: readonly unknown[] = ['passing', 'warning', 'critical']

/** Consul raises a shorter one to this, too. */
const DEREGISTER_AFTER_MIN_MS = 60_000
const PROBE_TIMEOUT_MS = 10_000
const PROBE_MIN_MS = 1000
const DURATIONS = ['interval', 'timeout', 'ttl', 'deregistercriticalserviceafter'] as const
/** Kinds of checks that Consul has and the checker of the registry does not. */
const OTHER_KINDS = [
  ...['scriptargs', 'args', 'dockercontainerid', 'udp', 'h2ping', 'osservice'],
  ...['aliasnode', 'aliasservice'],
]
/** What a probe of the registry cannot do. */
const OTHER_PROBES = ['header', 'method', 'body', 'tlsservername', 'tlsskipverify'] as const

/** A check of a registration, with the defaults that its registration gives it. */
export function parseCheck(
  given: unknown,
  defaults: { readonly id: string; readonly name: string },
  emptyDuration: '' | '0s',
): StoredCheck {
  const fields = withoutUnderscores(fieldsOf(given, 'a check'))
  const durations = durationsOf(fields)
  const { interval, timeout, ttl } = durations
  const kinds = (['http', 'tcp', 'grpc'] as const).filter((kind) => textOf(fields[kind]) !== '')
  refuseOtherKinds(fields)
  validate(kinds.length > 0, durations)
  const status = fields['status'] || 'critical'
  if (!STATUSES.includes(status)) {
    throw new ConsulError(400, "Status for checks must 'passing', 'warning', 'critical'")
  }
  const after = durations.deregistercriticalserviceafter
  return {
    id: textOf(fields['checkid']) || textOf(fields['id']) || defaults.id,
    name: textOf(fields['name']) || defaults.name,
    notes: textOf(fields['notes']),
    type: kinds[0] ?? 'ttl',
    interval: interval === 0 ? emptyDuration : goDurationText(interval),
    timeout: timeout === 0 ? emptyDuration : goDurationText(timeout),
    ...(ttl > 0 && { ttl }),
    ...(kinds[0] && { probe: probeOf(fields, kinds[0], durations) }),
    ...(after > 0 && { deregisterAfter: Math.max(after, DEREGISTER_AFTER_MIN_MS) }),
    status: status as CheckStatus,
    output: '',
  }
}

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

type Durations = Readonly<Record<(typeof DURATIONS)[number], number>>

/** In milliseconds; 0 if it is not given. A number is in nanoseconds. */
function durationsOf(fields: Fields): Durations {
  const entries = DURATIONS.map((name) => {
    const value = fields[name] ?? 0
    const ms = typeof value === 'number' ? value / 1e6 : goDuration(String(value))
    if (ms !== undefined) return [name, ms]
    throw decodeFailed(`time: invalid duration "${String(value)}"`)
  })
  return Object.fromEntries(entries) as Durations
}

function validate(isProbe: boolean, { interval, ttl }: Durations): void {
  const refuse = (why: string) => new ConsulError(400, `Invalid check: ${why}`)
  if (interval > 0 && ttl > 0) throw refuse('Interval and TTL cannot both be specified')
  if (isProbe && interval <= 0) {
    const kinds = 'Script, HTTP, H2PING, TCP, UDP or OSService checks'
    throw refuse(`Interval must be > 0 for ${kinds}`)
  }
  if (!isProbe && ttl <= 0) throw refuse('TTL must be > 0 for TTL checks')
}

function refuseOtherKinds(fields: Fields): void {
  const other = OTHER_KINDS.find((kind) => fields[kind])
  if (other === undefined) return
  throw new ConsulError(
    501,
    `Leasehold has no checks with ${other}. Use HTTP, TCP, GRPC or TTL: see its table of differences`,
  )
}

function probeOf(fields: Fields, kind: 'http' | 'tcp' | 'grpc', { interval, timeout }: Durations) {
  const other = OTHER_PROBES.find((name) => fields[name] && fields[name] !== 'GET')
  if (other !== undefined) {
    throw new ConsulError(501, `Leasehold's checks have no ${other}: see its table of differences`)
  }
  const target = textOf(fields[kind])
  const scheme = kind === 'grpc' && fields['grpcusetls'] ? 'grpcs' : kind
  const every = Math.max(interval, PROBE_MIN_MS)
  const timing = {
    every,
    timeout: Math.min(timeout || PROBE_TIMEOUT_MS, every),
    down: countOf(fields['failuresbeforecritical']),
    up: countOf(fields['successbeforepassing']),
    initially: (fields['status'] || 'critical') as CheckStatus,
  }
  const url = kind === 'http' ? target : `${scheme}://${target}`
  return { [kind]: url, ...timing } as unknown as CheckSpec
}

function countOf(value: unknown): number {
  return typeof value === 'number' && value > 1 ? value : 1
}

/** Consul knows `DeregisterCriticalServiceAfter` also as `deregister_critical_service_after`. */
function withoutUnderscores(fields: Fields): Fields {
  const entries = Object.entries(fields)
  return Object.fromEntries(entries.map(([name, value]) => [name.replaceAll('_', ''), value]))
}
