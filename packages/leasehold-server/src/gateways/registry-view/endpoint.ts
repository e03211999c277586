import { isIPv4, isIPv6 } from 'node:net'

/** Where an instance listens, as far as its address says. */
export interface Endpoint {
  /** An IP address, or a host name. */
  readonly host: string
  /** 0 for a host name. */
  readonly family: 0 | 4 | 6
  readonly port: number | undefined
  /** Such as `https`, if the address is a URL. */
  readonly scheme: string | undefined
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { http: 80, https: 443, grpcs: 443 }
const URL_FORM = /^(?<scheme>[a-z][a-z0-9+.-]*):\/\/(?:[^/?#@]*@)?(?<authority>[^/?#]*)/i
const LABEL = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/i
const HOST_MAX = 253
const PORT_MAX = 65_535

/**
 * Parses an address that an instance registered: `10.0.0.7:8080`, `[::1]:80`, `host`, or a URL.
 * Returns `undefined` if it names no host: an address may be anything that its clients understand.
 */
export function parseEndpoint(address: string | undefined): Endpoint | undefined {
  if (address === undefined) return undefined
  const groups = URL_FORM.exec(address)?.groups
  const scheme = groups?.['scheme']?.toLowerCase()
  const authority = groups?.['authority'] ?? address
  if (isIPv6(authority)) return endpoint(authority, undefined, scheme)
  const [, bracketed, plain, digits] =
    /^(?:\[([^\]]*)\]|([^:[\]]*))(?::(\d{1,5}))?$/.exec(authority) ?? []
  if (bracketed !== undefined && !isIPv6(bracketed)) return undefined
  const host = bracketed ?? plain
  return host === undefined ? undefined : endpoint(host, digits, scheme)
}

function endpoint(
  host: string,
  digits: string | undefined,
  scheme: string | undefined,
): Endpoint | undefined {
  const port = digits === undefined ? DEFAULT_PORTS[scheme ?? ''] : Number(digits)
  if (port !== undefined && (port < 1 || port > PORT_MAX)) return undefined
  const family = isIPv4(host) ? 4 : isIPv6(host) ? 6 : 0
  // An address with a zone id, such as fe80::1%eth0, means nothing on another machine.
  if (host.includes('%') || (family === 0 && !isHostName(host))) return undefined
  return { host, family, port, scheme }
}

/** Four numbers that are no address, such as 1.2.3.256, are no host name either. */
function isHostName(host: string): boolean {
  const labels = host.replace(/\.$/, '').split('.')
  const isNamed = labels.every((label) => LABEL.test(label)) && !/^\d+$/.test(labels.at(-1)!)
  return host.length <= HOST_MAX && isNamed
}
