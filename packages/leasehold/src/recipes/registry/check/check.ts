import {
  checkNames,
  type Duration,
  formatDuration,
  invalid,
  knownNames,
  show,
} from '../../../port/index.ts'
import { countOf, durationOf, objectOf, oneOf, stringOf } from '../../arguments.ts'
import { targetOf } from './check-policy.ts'

/**
 * How an instance wants to be checked, in addition to its heartbeat: a process that keeps its lease
 * may still not do its work.
 *
 * One of these:
 * - `http`: a path such as `/health` at the instance's address, or a URL. 2xx is passing, 429 is a
 *   warning, anything else is critical. Redirects are not followed.
 * - `tcp`: a connection can be opened. `true` for the instance's address, or `host:port`.
 * - `grpc`: the standard health service. `true` for the instance's address, the name of a service
 *   there, or `grpc://host:port/service` (`grpcs` with TLS).
 * - `ttl`: the instance reports by itself, at least this often.
 */
export type CheckSpec = CheckTiming &
  (
    | { readonly http: string }
    | { readonly tcp: string | true }
    | { readonly grpc: string | true }
    | { readonly ttl: Duration }
  )

export interface CheckTiming {
  /** The interval between checks, before jitter. Default: 10 s. */
  readonly every?: Duration | undefined
  /** The timeout of one check; at most `every`. Default: 2 s. */
  readonly timeout?: Duration | undefined
  /** How many checks in a row must fail before the instance is down. Default: 3. */
  readonly down?: number | undefined
  /** How many checks in a row must pass before it is up again. Default: 2. */
  readonly up?: number | undefined
  /** A critical instance is left out of discovery (`leave`), or its lease is revoked (`revoke`). */
  readonly onCritical?: OnCritical | undefined
  /** The status before the first check. Default: `passing`. */
  readonly initially?: CheckStatus | undefined
}

export type OnCritical = 'leave' | 'revoke'

export const CHECK_STATUSES = ['passing', 'warning', 'critical'] as const

export type CheckStatus = (typeof CHECK_STATUSES)[number]

/** A check as stored: complete, and the same for every reader. */
export interface Check {
  /** The URL; `undefined` for a ttl check. */
  readonly url?: string | undefined
  readonly ttl?: number | undefined
  readonly every: number
  readonly timeout: number
  readonly down: number
  readonly up: number
  readonly onCritical: OnCritical
  readonly initially: CheckStatus
}

const URL_MAX = 1024
const CHECK_NAMES = knownNames<CheckTiming & Record<'http' | 'tcp' | 'grpc' | 'ttl', unknown>>({
  http: true,
  tcp: true,
  grpc: true,
  ttl: true,
  every: true,
  timeout: true,
  down: true,
  up: true,
  onCritical: true,
  initially: true,
})

/** Completes the check of an instance at this address. */
export function checkOf(spec: CheckSpec, address: string | undefined): Check {
  const given = objectOf('check', spec)
  checkNames('check', given, CHECK_NAMES)
  const named = ['http', 'tcp', 'grpc', 'ttl'].filter((kind) => given[kind] !== undefined)
  if (named.length !== 1) {
    const what = named.length === 0 ? 'none of them' : named.join(' and ')
    throw invalid(`check names ${what}: give exactly one of http, tcp, grpc and ttl`)
  }
  if (named[0] === 'ttl') return withTiming({ ttl: given['ttl'] }, given)
  return withTiming({ url: urlOf(named[0]!, given[named[0]!], address) }, given)
}

/** Parses a stored check, with the same rules as a new one. */
export function parseCheck(value: unknown): Check {
  const given = objectOf('check', value)
  return withTiming({ url: given['url'], ttl: given['ttl'] }, given)
}

function withTiming(
  what: { readonly url?: unknown; readonly ttl?: unknown },
  timing: Readonly<Record<string, unknown>>,
): Check {
  const { every = '10s', down = 3, up = 2, onCritical = 'leave', initially = 'passing' } = timing
  const period = durationOf('check.every', every, '10ms', '1d')
  const timeout = durationOf('check.timeout', timing['timeout'] ?? Math.min(2000, period), 1, '1m')
  if (timeout > period) {
    throw invalid(
      `check.timeout ${formatDuration(timeout)} is longer than check.every ${formatDuration(period)}. Make check.timeout at most as long as check.every`,
    )
  }
  const common = {
    every: period,
    timeout,
    down: countOf('check.down', down, 1, 100),
    up: countOf('check.up', up, 1, 100),
    onCritical: oneOf('check.onCritical', onCritical, ['leave', 'revoke']),
    initially: oneOf('check.initially', initially, CHECK_STATUSES),
  }
  if (what.url === undefined)
    return { ttl: durationOf('check.ttl', what.ttl, '10ms', '7d'), ...common }
  const url = stringOf('check', what.url, URL_MAX)
  targetOf('check', url)
  return { url, ...common }
}

const WHOLE = /^[a-z]+:\/\//

/** The complete URL of a check. The given one may be only a part of it. */
function urlOf(kind: string, value: unknown, address: string | undefined): string {
  const name = `check.${kind}`
  const schemes = kind === 'tcp' ? ['tcp'] : [kind, `${kind}s`]
  const given = value === true && kind !== 'http' ? '' : stringOf(name, value, URL_MAX)
  if (WHOLE.test(given)) {
    if (schemes.some((scheme) => given.startsWith(`${scheme}://`))) return given
    throw invalid(`${name} is ${show(given)}: it must start with ${schemes[0]}://`)
  }
  if (kind === 'tcp' && given !== '') return `tcp://${given}`
  // `b:80` and `b.local/health` are meant as other hosts, not as paths at the instance's address.
  if (/^[^/?]*:|^[^/?]*\.[^/?]*\//.test(given)) {
    throw invalid(
      `${name} is ${show(given)}, which is neither a path nor a URL: write ${schemes[0]}://${given}`,
    )
  }
  if (address === undefined) {
    throw invalid(
      `${name} is ${show(value)}, but the instance has no address. Give an address, or a complete URL`,
    )
  }
  const [, scheme, place] = /^(?:([a-z]+):\/\/)?([^/]*)/.exec(address)!
  const isSecure = kind !== 'tcp' && (scheme === 'https' || scheme === 'grpcs')
  const path = given === '' || given.startsWith('/') ? given : `/${given}`
  const port = /:\d+$/.test(place!) ? '' : portFor(scheme)
  return `${isSecure ? schemes[1] : schemes[0]}://${place}${port}${path}`
}

/** The default port of the address's scheme, which must be explicit for another scheme. */
function portFor(scheme: string | undefined): string {
  if (scheme === 'https') return ':443'
  return scheme === 'http' ? ':80' : ''
}
