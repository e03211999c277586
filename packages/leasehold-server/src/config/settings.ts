import { isIP } from 'node:net'
import { milliseconds } from 'leasehold/port'
import { DEFAULT_STREAM } from '../stream/options.ts'
import { DEFAULT_HOST, DEFAULT_PORT, isLoopback } from './listen-address.ts'
import { InvalidSetting, type Setting } from './setting.ts'

export const LOG_LEVELS = ['silent', 'error', 'warn', 'info', 'debug'] as const
/** Used instead of a file name to turn a file off. */
export const NONE = 'none'

/** From `public` on, each value allows what the ones before it allow, and more. */
export const CHECKS = ['off', 'external', 'public', 'private', 'loopback'] as const

/** All settings of `leasehold serve`. */
export const SETTINGS = {
  store: {
    flag: '--store <url>',
    help: "the store to serve: 'file:<folder>' (durable), 'memory:', or an engine that several servers can share: 'redis://…', 'redis+sentinel://…', 'postgres://…', 'etcd://…', 'consul://…', 'zookeeper://…', 'nats://…' or 'azure+https://…'",
    defaultValue: 'file:./data',
    read: nonEmpty,
  },
  host: {
    flag: '--host <address>',
    help: 'the address to listen on',
    defaultValue: DEFAULT_HOST,
    read: nonEmpty,
  },
  port: {
    flag: '--port <number>',
    help: 'the port to listen on; 0 for any free port',
    defaultValue: String(DEFAULT_PORT),
    read: (value) => integer(value, 0, 65_535),
  },
  tlsCert: {
    flag: '--tls-cert <file>',
    help: "the server's certificate chain in PEM; turns on TLS, together with --tls-key",
    defaultText: 'no TLS',
    read: nonEmpty,
  },
  tlsKey: {
    flag: '--tls-key <file>',
    help: 'the private key of the certificate, in PEM',
    read: nonEmpty,
  },
  tlsCa: {
    flag: '--tls-ca <file>',
    help: 'turns on mutual TLS: clients need a certificate signed by this CA (PEM), and its common name selects their access token',
    defaultText: 'no mutual TLS',
    read: nonEmpty,
  },
  audit: {
    flag: '--audit <file>',
    help: `the file for the audit log: one line of JSON for each forced change and each refusal; '${NONE}' turns it off`,
    defaultText: "audit.log in the data folder; 'none' for other stores",
    read: nonEmpty,
  },
  secretsKeyFile: {
    flag: '--secrets-key-file <file>',
    help: 'the key that signs lease secrets, 32 bytes or more in base64; the same on all servers of one store',
    defaultText:
      'secrets.key in the data folder, created at the first start; a new key at each start for other stores',
    read: nonEmpty,
  },
  insecureOpenNetwork: {
    flag: '--insecure-open-network',
    help: 'lets other machines connect without TLS, or without access tokens and mutual TLS: anybody who reaches the port can then read, take and end every lease, or eavesdrop',
    defaultValue: 'false',
    read: boolean,
  },
  checks: {
    flag: '--checks <where>',
    help: "which addresses health checks may reach: public, private (public and private networks) or loopback (also this machine), never link-local or metadata addresses; 'off' refuses instances with a network check, 'external' leaves the checks to a checker of your own",
    defaultValue: 'private',
    read: oneOf(CHECKS),
  },
  dns: {
    flag: '--dns <address>',
    help: 'answers DNS queries for registered services, on this port or address:port, by UDP and TCP; DNS has no access rights, so a port alone means loopback',
    defaultText: 'off',
    read: listenAddress,
  },
  consul: {
    flag: '--consul <address>',
    help: 'serves a part of the HTTP API of Consul, on this port or loopback address:port; it has no access rights, so it refuses addresses that other machines can reach',
    defaultText: 'off',
    read: loopbackAddress,
  },
  prometheus: {
    flag: '--prometheus',
    help: 'serves registered instances as targets for the http_sd discovery of Prometheus, at /prometheus/targets',
    defaultValue: 'false',
    read: boolean,
  },
  eureka: {
    flag: '--eureka',
    help: 'serves the registry by the REST protocol of Eureka, at /eureka and /eureka/v2',
    defaultValue: 'false',
    read: boolean,
  },
  xds: {
    flag: '--xds <address>',
    help: 'serves the registry by xDS v3 (ADS over gRPC) on this port or address:port, and EDS over REST at /v3/discovery:endpoints, with the access rights and the TLS of the server; a port alone means loopback',
    defaultText: 'off',
    read: listenAddress,
  },
  kubernetes: {
    flag: '--kubernetes',
    help: 'serves the Lease API of Kubernetes (coordination.k8s.io/v1) for kubectl and leader election, at /kubernetes',
    defaultValue: 'false',
    read: boolean,
  },
  connections: {
    flag: '--connections <number>',
    help: 'the most open streams; the server refuses more with 503',
    defaultValue: String(DEFAULT_STREAM.connections),
    read: (value) => integer(value, 1, 1_000_000),
  },
  drain: {
    flag: '--drain <duration>',
    help: 'how long a stopping server waits for calls in progress',
    defaultValue: '5s',
    read: duration,
  },
  exitWhenUnused: {
    flag: '--exit-when-unused <duration>',
    help: 'stops the server when no stream was open and no request came for this long',
    defaultText: 'it runs until it is stopped',
    read: duration,
  },
  logLevel: {
    flag: '--log-level <level>',
    help: `the level of the log on standard error, in lines of JSON: ${LOG_LEVELS.join(', ')}`,
    defaultValue: 'warn',
    read: oneOf(LOG_LEVELS),
  },
} as const satisfies Record<string, Setting<unknown>>

export type SettingName = keyof typeof SETTINGS

export const SETTING_NAMES = Object.keys(SETTINGS) as SettingName[]

/** The file with the other settings. It cannot name itself. */
export const CONFIG_FLAG: Setting<string> = {
  flag: '--config <file>',
  help: 'a JSON file with any of these settings in camelCase; flags and environment override it',
  defaultText: './leasehold.json if it exists',
  read: nonEmpty,
}

function nonEmpty(value: string): string {
  if (value !== '') return value
  throw new InvalidSetting('it must not be empty')
}

function integer(digits: string, min: number, max: number): number {
  const value = Number(digits)
  if (/^\d+$/.test(digits) && value >= min && value <= max) return value
  throw new InvalidSetting(`it must be an integer from ${min} to ${max}`)
}

/** `8600`, `10.0.0.1:8600` or `[::1]:8600`. */
function listenAddress(value: string): { readonly host: string; readonly port: number } {
  const [, bracketed, plain, digits] = /^(?:(?:\[(.+)\]|([^:]+)):)?(\d+)$/.exec(value) ?? []
  const host = bracketed ?? plain ?? DEFAULT_HOST
  const isAddress = bracketed === undefined ? isIP(host) === 4 : isIP(host) === 6
  if (digits !== undefined && isAddress) return { host, port: integer(digits, 0, 65_535) }
  throw new InvalidSetting(
    "it must be a port or an IP address and a port, such as '8600', '10.0.0.1:8600' or '[::1]:8600'",
  )
}

/** For a gateway without access rights that changes leases. */
function loopbackAddress(value: string): { readonly host: string; readonly port: number } {
  const address = listenAddress(value)
  if (isLoopback(address.host)) return address
  throw new InvalidSetting(
    'it must be a loopback address, such as 127.0.0.1:8500, because this API has no access rights',
  )
}

function boolean(value: string): boolean {
  if (value === 'true' || value === 'false') return value === 'true'
  throw new InvalidSetting('it must be true or false')
}

function duration(value: string): number {
  try {
    const ms = milliseconds(/^\d+$/.test(value) ? Number(value) : (value as '5s'), 'it')
    if (ms < Infinity) return ms
  } catch {
    // The same message fits an invalid duration.
  }
  throw new InvalidSetting("it must be a duration such as '5s' or '500ms'")
}

function oneOf<Word extends string>(words: readonly Word[]): (value: string) => Word {
  return (value) => {
    const word = words.find((each) => each === value)
    if (word !== undefined) return word
    throw new InvalidSetting(`it must be one of ${words.join(', ')}`)
  }
}
