import { invalid, show } from '../../../port/index.ts'
import { numberOf, objectOf, oneOf } from '../../arguments.ts'
import { type AddressKind, addressKind, isSameHost, parseAddress } from './address.ts'

/**
 * Where health checks may connect to.
 *
 * A registration names an address, and the checker connects to it. Without rules, anybody who can
 * register could make the checker reach internal addresses. So some addresses are always refused,
 * others by configuration. The probes connect to exactly the address that was checked.
 */
const SCHEMES = ['http', 'https', 'tcp', 'grpc', 'grpcs'] as const

export type Scheme = (typeof SCHEMES)[number]

/** The target of a check: the parts of its URL. */
export interface CheckTarget {
  readonly scheme: Scheme
  /** An IP address without brackets, or a host name. */
  readonly host: string
  readonly port: number
  /** With the query. For grpc: a slash and the name of the service. */
  readonly path: string
}

export interface CheckPolicy {
  /**
   * Whether checks may connect to the checker's own machine: to loopback addresses, and to the
   * addresses of its network interfaces. Default: no.
   */
  readonly loopback?: boolean | undefined
  /** Whether checks may connect to private networks, such as 10/8 and fc00::/7. Default: yes. */
  readonly private?: boolean | undefined
  /** Default: all. */
  readonly schemes?: readonly Scheme[] | undefined
  /** Single ports, or inclusive ranges. Default: 80, 443 and 1024 to 65535. */
  readonly ports?: readonly (number | readonly [number, number])[] | undefined
  /** The port that this process serves on its own machine: no check may ever connect to it. */
  readonly ownPort?: (() => number | undefined) | undefined
  /** The names of the settings that allow more, for messages. Default: `allow.loopback` and so on. */
  readonly settings?: PolicySettings | undefined
}

export interface PolicySettings {
  readonly loopback: string
  readonly private: string
}

const SETTINGS: PolicySettings = {
  loopback: 'allow.loopback of the checker',
  private: 'allow.private of the checker',
}
const PORTS: NonNullable<CheckPolicy['ports']> = [80, 443, [1024, 65_535]]
/** No configuration allows these. */
const NEVER: readonly AddressKind[] = [
  'link-local',
  'metadata',
  'unspecified',
  'multicast',
  'reserved',
]
const FORM = /^([a-z]+):\/\/(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?(\/[!-~]*)?$/
const DEFAULT_PORT: Partial<Record<Scheme, number>> = { http: 80, https: 443 }

/** Parses a check's URL. Throws if it is ambiguous or never allowed. */
export function targetOf(name: string, url: string): CheckTarget {
  const parts = FORM.exec(url)
  if (!parts) {
    throw invalid(
      `${name} is ${show(url)}: write scheme://host:port/path, without user, fragment or spaces`,
    )
  }
  const scheme = oneOf(`the scheme of ${name}`, parts[1], SCHEMES)
  const host = parts[2]!.replace(/^\[|\]$/g, '')
  const port = parts[3] === undefined ? DEFAULT_PORT[scheme] : Number(parts[3])
  if (port === undefined || port < 1 || port > 65_535) {
    throw invalid(`${name} is ${show(url)}: give it a port from 1 to 65535`)
  }
  const complaint = complaintAboutHost(host)
  if (complaint !== undefined) throw invalid(`${name} is ${show(url)}: ${complaint}`)
  return { scheme, host, port, path: parts[4] ?? '/' }
}

/** Why a host is never allowed; `undefined` if it may be allowed. */
function complaintAboutHost(host: string): string | undefined {
  const address = parseAddress(host)
  if (address !== undefined) return neverAllowed(addressKind(address))
  const last = host.replace(/\.$/, '').split('.').at(-1)!
  if (host.includes(':') || /^(\d+|0[xX][0-9a-fA-F]*)$/.test(last)) {
    return `${show(host)} is neither a host name nor a valid address: write four decimal numbers, or IPv6 in brackets`
  }
  if (host.length > 253) return 'its host is longer than 253 characters'
  return undefined
}

function neverAllowed(kind: AddressKind): string | undefined {
  if (!NEVER.includes(kind)) return undefined
  return `health checks of ${kind} addresses are never allowed. Give the address that the instance serves at`
}

export interface CheckedPolicy {
  readonly loopback: boolean
  readonly private: boolean
  readonly schemes: readonly Scheme[]
  readonly ports: readonly (readonly [number, number])[]
  readonly ownPort: () => number | undefined
  readonly settings: PolicySettings
}

/** The policy with all defaults filled in. */
export function checkedPolicy(policy: CheckPolicy = {}): CheckedPolicy {
  objectOf('allow', policy)
  const { loopback = false, private: inside = true, schemes = SCHEMES, ports = PORTS } = policy
  const { ownPort = noPort, settings = SETTINGS } = policy
  return {
    ownPort,
    settings,
    loopback: loopback === true,
    private: inside === true,
    schemes: schemes.map((scheme) => oneOf('an entry of allow.schemes', scheme, SCHEMES)),
    ports: ports.map((entry) => {
      const [from, to] = typeof entry === 'number' ? [entry, entry] : entry
      return [portOf(from), portOf(to)] as const
    }),
  }
}

function noPort(): undefined {
  return undefined
}

function portOf(port: unknown): number {
  return numberOf('a port in allow.ports', port, 1, 65_535)
}

/** Why the policy refuses a target before its host is resolved; `undefined` if it does not. */
export function complaintAboutTarget(
  target: CheckTarget,
  policy: CheckedPolicy,
): string | undefined {
  const { scheme, port } = target
  if (!policy.schemes.includes(scheme)) return `checks by ${scheme} are not allowed here`
  if (policy.ports.some(([from, to]) => port >= from && port <= to)) return undefined
  const allowed = policy.ports.map(([from, to]) => (from === to ? from : `${from} to ${to}`))
  return `checks of port ${port} are not allowed here: use one of ${allowed.join(', ')}`
}

/** Where a check would connect to, and what is known about the machine that connects. */
export interface ConnectionPlace {
  readonly port: number
  /** The addresses of this machine's network interfaces. */
  readonly ownAddresses: readonly string[]
}

/** Why the policy refuses a resolved address; `undefined` if it does not. */
export function complaintAboutAddress(
  address: string,
  policy: CheckedPolicy,
  { port, ownAddresses }: ConnectionPlace,
): string | undefined {
  const { settings } = policy
  const bytes = parseAddress(address)
  if (bytes === undefined) return `${show(address)} is not an IP address`
  const kind = addressKind(bytes)
  const never = neverAllowed(kind)
  if (never !== undefined) return never
  const isOwn = ownAddresses.map(parseAddress).some((own) => own && isSameHost(own, bytes))
  if (kind === 'loopback' || isOwn) {
    if (port === policy.ownPort()) return `port ${port} here is the server's own: never checked`
    const what = kind === 'loopback' ? 'loopback addresses' : "the checker's own machine"
    if (!policy.loopback)
      return `checks of ${what} are not allowed here. To allow them: ${settings.loopback}`
  } else if (kind === 'private' && !policy.private) {
    return `checks of private addresses are not allowed here. To allow them: ${settings.private}`
  }
  return undefined
}
