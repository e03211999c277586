import { invalid, show } from '../../../port/index.ts'
import { numberOf, objectOf, oneOf } from '../../arguments.ts'
import { type AddressKind, addressKind, parseAddress } from './address.ts'

/**
 * Where health checks may go.
 *
 * A registration names an address, and whoever runs the checks goes there: without rules, anybody
 * who can register could make it knock on doors that only it can reach. So some addresses are
 * refused always, others by configuration, and the address that was judged is the very one that is
 * connected to (see the probes).
 */
const SCHEMES = ['http', 'https', 'tcp', 'grpc', 'grpcs'] as const

export type Scheme = (typeof SCHEMES)[number]

/** Where a check goes: the parts of its URL. */
export interface CheckTarget {
  readonly scheme: Scheme
  /** An IP address without brackets, or a name. */
  readonly host: string
  readonly port: number
  /** With its query. For grpc: the name of the service, behind the slash. */
  readonly path: string
}

export interface CheckPolicy {
  /** Whether checks may go to this machine itself. Not if not given. */
  readonly loopback?: boolean | undefined
  /** Whether checks may go to private networks (10/8, 192.168/16, fc00::/7 and their like). */
  readonly private?: boolean | undefined
  /** All if not given. */
  readonly schemes?: readonly Scheme[] | undefined
  /** Single ports, or ranges with both ends. 80, 443 and 1024 to 65535 if not given. */
  readonly ports?: readonly (number | readonly [number, number])[] | undefined
}

const PORTS: NonNullable<CheckPolicy['ports']> = [80, 443, [1024, 65_535]]
/** Nothing that can be configured opens these. */
const NEVER: readonly AddressKind[] = [
  'link-local',
  'metadata',
  'unspecified',
  'multicast',
  'reserved',
]
const FORM = /^([a-z]+):\/\/(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?(\/[!-~]*)?$/
const DEFAULT_PORT: Partial<Record<Scheme, number>> = { http: 80, https: 443 }

/** The parts of a check's URL. Refuses what is not written plainly, and what is never allowed. */
export function targetOf(name: string, url: string): CheckTarget {
  const parts = FORM.exec(url)
  if (!parts) {
    throw invalid(
      `${name} is ${show(url)}: write it as scheme://host:port/path, without user, fragment and spaces`,
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

/** Why a check may not have this host, whatever is configured; `undefined` where it may. */
function complaintAboutHost(host: string): string | undefined {
  const address = parseAddress(host)
  if (address !== undefined) return neverAllowed(addressKind(address))
  const last = host.replace(/\.$/, '').split('.').at(-1)!
  if (host.includes(':') || /^(\d+|0[xX][0-9a-fA-F]*)$/.test(last)) {
    return `${show(host)} is neither a name nor a plainly written address: write four decimal numbers, or IPv6 in brackets`
  }
  if (host.length > 253) return 'its host is longer than 253 characters'
  return undefined
}

function neverAllowed(kind: AddressKind): string | undefined {
  if (!NEVER.includes(kind)) return undefined
  return `a health check never goes to ${kind} addresses: give the address that the instance serves at`
}

export interface CheckedPolicy {
  readonly loopback: boolean
  readonly private: boolean
  readonly schemes: readonly Scheme[]
  readonly ports: readonly (readonly [number, number])[]
}

/** The policy with everything that was not given filled in. */
export function checkedPolicy(policy: CheckPolicy = {}): CheckedPolicy {
  objectOf('allow', policy)
  const { loopback = false, private: inside = true, schemes = SCHEMES, ports = PORTS } = policy
  return {
    loopback: loopback === true,
    private: inside === true,
    schemes: schemes.map((scheme) => oneOf('an entry of allow.schemes', scheme, SCHEMES)),
    ports: ports.map((entry) => {
      const [from, to] = typeof entry === 'number' ? [entry, entry] : entry
      return [portOf(from), portOf(to)] as const
    }),
  }
}

function portOf(port: unknown): number {
  return numberOf('a port in allow.ports', port, 1, 65_535)
}

/** Why this policy refuses a target before its host is looked up; `undefined` where it does not. */
export function complaintAboutTarget(
  target: CheckTarget,
  policy: CheckedPolicy,
): string | undefined {
  const { scheme, port } = target
  if (!policy.schemes.includes(scheme)) return `checks by ${scheme} are not allowed here`
  if (policy.ports.some(([from, to]) => port >= from && port <= to)) return undefined
  return `checks of port ${port} are not allowed here`
}

/** Why this policy refuses an address that a host was found to have. */
export function complaintAboutAddress(address: string, policy: CheckedPolicy): string | undefined {
  const bytes = parseAddress(address)
  if (bytes === undefined) return `${show(address)} is no IP address`
  const kind = addressKind(bytes)
  const never = neverAllowed(kind)
  if (never !== undefined) return never
  if (kind === 'loopback' && !policy.loopback) {
    return 'checks of loopback addresses are not allowed here'
  }
  if (kind === 'private' && !policy.private) {
    return 'checks of private addresses are not allowed here'
  }
  return undefined
}
