import { isIP } from 'node:net'
import type { InstanceSpec } from 'leasehold'
import { invalid, show } from 'leasehold/port'
import type { ServiceInstance } from '../registry-view/index.ts'
import { type EurekaStatus, eurekaStatusOf } from './status.ts'

/** An instance in the form of Eureka. In XML, names with `@` are attributes and `$` is the text. */
export type InstanceInfo = Readonly<Record<string, unknown>> & { readonly status: EurekaStatus }

/** What Eureka knows of an instance and the registry does not: kept in metadata with this prefix. */
const OWN = 'eureka.'
const TEXT_FIELDS = [
  ...['hostName', 'ipAddr', 'vipAddress', 'secureVipAddress', 'homePageUrl', 'statusPageUrl'],
  ...['healthCheckUrl', 'secureHealthCheckUrl', 'appGroupName', 'asgName'],
] as const
const DEFAULT_DURATION = 90
const DEFAULT_INTERVAL = 30
const DURATION_MAX = 24 * 3600
const PORT_MAX = 65_535
const NO_PORT = 7001
const NO_SECURE_PORT = 7002

/** A registration by Eureka, as the registry keeps it. */
export interface EurekaRegistration {
  readonly id: string
  readonly spec: InstanceSpec
  /** In milliseconds. */
  readonly ttl: number
  readonly status: unknown
}

type Fields = Readonly<Record<string, unknown>>

export function parseRegistration(body: unknown): EurekaRegistration {
  const given = fieldsOf(fieldsOf(body)['instance'])
  const leaseInfo = fieldsOf(given['leaseInfo'])
  const center = fieldsOf(fieldsOf(given['dataCenterInfo'])['metadata'])
  const { instanceId, hostName, status = 'UP' } = given
  const id = instanceId ?? center['instance-id'] ?? hostName
  if (typeof id !== 'string') throw invalid('the instance has no instanceId and no hostName')
  const seconds = numberIn(leaseInfo['durationInSecs'], DEFAULT_DURATION)
  const interval = numberIn(leaseInfo['renewalIntervalInSecs'], DEFAULT_INTERVAL)
  if (seconds < 1 || seconds > DURATION_MAX) {
    throw invalid(`durationInSecs is ${seconds}: it must be from 1 to ${DURATION_MAX}`)
  }
  const metadata = textsOf(fieldsOf(given['metadata']))
  const own = textsOf(Object.fromEntries(TEXT_FIELDS.map((name) => [name, given[name]])), OWN)
  const timing = { [`${OWN}duration`]: String(seconds), [`${OWN}interval`]: String(interval) }
  const zone = metadata['zone'] ?? textsOf(center)['availability-zone']
  const ports = portsIn(given)
  const spec: InstanceSpec = {
    address: addressIn(given, ports),
    metadata: { ...metadata, ...own, ...timing, [`${OWN}ports`]: JSON.stringify(ports) },
    ...(zone !== undefined && { zone }),
  }
  return { id, spec, ttl: seconds * 1000, status }
}

/** `undefined` if the address of the instance names no host. */
export function instanceInfoOf(instance: ServiceInstance, action = 'ADDED') {
  const { service, id, status, note, endpoint, metadata, since, zone } = instance
  if (endpoint === undefined) return undefined
  const own = (name: string) => metadata[OWN + name]
  const shown = eurekaStatusOf(status, note)
  const { host, port, scheme } = endpoint
  const isSecure = scheme === 'https'
  const ports = portsOf(own('ports')) ?? (isSecure ? { secure: port } : { plain: port })
  const registeredAt = Math.floor(since)
  const info: InstanceInfo = {
    instanceId: id,
    hostName: own('hostName') ?? host,
    app: appOf(service),
    ipAddr: own('ipAddr') ?? host,
    status: shown,
    overriddenStatus: status === 'maintenance' ? shown : 'UNKNOWN',
    port: portInfo(ports.plain, NO_PORT),
    securePort: portInfo(ports.secure, NO_SECURE_PORT),
    countryId: 1,
    dataCenterInfo: {
      '@class': 'com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo',
      name: 'MyOwn',
    },
    leaseInfo: {
      renewalIntervalInSecs: secondsIn(own('interval')) ?? DEFAULT_INTERVAL,
      durationInSecs: secondsIn(own('duration')) ?? DEFAULT_DURATION,
      registrationTimestamp: registeredAt,
      lastRenewalTimestamp: registeredAt,
      evictionTimestamp: 0,
      serviceUpTimestamp: registeredAt,
    },
    metadata: {
      ...(zone !== undefined && { zone }),
      ...otherMetadata(metadata),
    },
    vipAddress: service,
    secureVipAddress: service,
    ...Object.fromEntries(TEXT_FIELDS.flatMap((name) => (own(name) ? [[name, own(name)]] : []))),
    isCoordinatingDiscoveryServer: 'false',
    lastUpdatedTimestamp: String(registeredAt),
    lastDirtyTimestamp: String(registeredAt),
    actionType: action,
  }
  return info
}

/** Whether a registration was made by Eureka. Others belong to their own clients. */
export function isByEureka({ metadata }: Pick<ServiceInstance, 'metadata'>): boolean {
  return Object.hasOwn(metadata, `${OWN}duration`)
}

/** Eureka writes the names of applications in upper case. */
export function appOf(service: string): string {
  return service.toUpperCase()
}

/** The service that an application of Eureka registers. */
export function serviceOf(app: string): string {
  return app.toLowerCase()
}

interface Ports {
  readonly plain?: number | undefined
  readonly secure?: number | undefined
}

function portInfo(port: number | undefined, otherwise: number) {
  return { $: port ?? otherwise, '@enabled': String(port !== undefined) }
}

function portsIn({ port, securePort }: Fields): Ports {
  return { plain: enabledPort(port, true), secure: enabledPort(securePort, false) }
}

/** `8080`, or `{ $: 8080, '@enabled': 'true' }`. */
function enabledPort(given: unknown, isUsual: boolean): number | undefined {
  const fields = typeof given === 'object' ? fieldsOf(given) : { $: given }
  const isEnabled = String(fields['@enabled'] ?? isUsual) === 'true'
  if (!isEnabled || fields['$'] === undefined) return undefined
  const port = numberIn(fields['$'], 0)
  if (port <= PORT_MAX) return port
  throw invalid(`port is ${port}: it must be at most ${PORT_MAX}`)
}

/** Anybody may have written it: one wrong port would make the whole answer unreadable. */
function portsOf(json: string | undefined): Ports | undefined {
  try {
    const { plain, secure } = fieldsOf(JSON.parse(json ?? 'null'))
    const ports = { plain: portIn(plain), secure: portIn(secure) }
    return ports.plain === undefined && ports.secure === undefined ? undefined : ports
  } catch {
    return undefined
  }
}

function portIn(value: unknown): number | undefined {
  const isPort = Number.isInteger(value) && (value as number) > 0 && (value as number) <= PORT_MAX
  return isPort ? (value as number) : undefined
}

function secondsIn(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : undefined
}

/** Names that begin with `@` or `$` mean something else in the forms of Eureka. */
function otherMetadata(metadata: ServiceInstance['metadata']): Record<string, string> {
  const others = Object.entries(metadata).filter(([name]) => !name.startsWith(OWN))
  return Object.fromEntries(others.map(([name, value]) => [name.replace(/^[@$]/, '_'), value]))
}

function addressIn({ ipAddr, hostName }: Fields, { plain, secure }: Ports): string {
  const host = typeof ipAddr === 'string' && ipAddr !== '' ? ipAddr : hostName
  if (typeof host !== 'string' || host === '') throw invalid('the instance has no ipAddr')
  const shown = isIP(host) === 6 ? `[${host}]` : host
  if (plain !== undefined) return `${shown}:${plain}`
  return secure === undefined ? shown : `https://${shown}:${secure}`
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}

/** The entries that are texts or numbers. Names with `@` describe types of Java. */
function textsOf(fields: Fields, prefix = ''): Record<string, string> {
  const texts = Object.entries(fields).filter(
    ([name, value]) =>
      ['string', 'number', 'boolean'].includes(typeof value) && !name.startsWith('@'),
  )
  return Object.fromEntries(texts.map(([name, value]) => [prefix + name, String(value)]))
}

function numberIn(value: unknown, otherwise: number): number {
  if (value === undefined) return otherwise
  const number = Number(value)
  if (Number.isSafeInteger(number) && number >= 0) return number
  throw invalid(`${show(value)} is not a number that Eureka allows here`)
}
