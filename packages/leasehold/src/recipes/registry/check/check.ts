import { type Duration, formatDuration, invalid, show } from '../../../port/index.ts'
import { countOf, durationOf, objectOf, oneOf, stringOf } from '../../arguments.ts'
import { targetOf } from './check-policy.ts'

/**
 * How an instance asks to be checked by the registry's side, beside its own heartbeat: a process
 * that is alive and keeps its lease may still not do its work.
 *
 * One of these:
 * - `http`: a path such as `/health` below the instance's address, or a whole URL. 2xx is passing, 429
 *   is a warning, anything else is critical; redirects are not followed.
 * - `tcp`: a connection can be opened. `true` for the instance's address, or `tcp://host:port`.
 * - `grpc`: the standard health service. `true` for the instance's address, the name of a service
 *   there, or `grpc://host:port/service` (`grpcs` with TLS).
 * - `ttl`: nobody is asked; the instance reports by itself, at least so often.
 */
export type CheckSpec = CheckTiming &
  (
    | { readonly http: string }
    | { readonly tcp: string | true }
    | { readonly grpc: string | true }
    | { readonly ttl: Duration }
  )

export interface CheckTiming {
  /** How long from one check to the next, before jitter. 10 s if not given. */
  readonly every?: Duration | undefined
  /** How long one check may take; at most as long as `every`. 2 s if not given. */
  readonly timeout?: Duration | undefined
  /** How many checks in a row must fail until it counts as down. 3 if not given. */
  readonly down?: number | undefined
  /** How many in a row must pass until it counts as up again. 2 if not given. */
  readonly up?: number | undefined
  /** Critical: it is left out of discovery (`leave`), or loses its lease (`revoke`). */
  readonly onCritical?: OnCritical | undefined
  /** What it counts as before the first check. `passing` if not given. */
  readonly initially?: CheckStatus | undefined
}

export type OnCritical = 'leave' | 'revoke'

export const CHECK_STATUSES = ['passing', 'warning', 'critical'] as const

export type CheckStatus = (typeof CHECK_STATUSES)[number]

/** A check as it is written down: complete, and the same for everyone who reads it. */
export interface Check {
  /** Where it goes; `undefined` for a ttl check. */
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

/** The check that was asked for, for an instance at this address. */
export function checkOf(spec: CheckSpec, address: string | undefined): Check {
  const given = objectOf('check', spec)
  const named = ['http', 'tcp', 'grpc', 'ttl'].filter((kind) => given[kind] !== undefined)
  if (named.length !== 1) {
    const what = named.length === 0 ? 'none of them' : named.join(' and ')
    throw invalid(`check names ${what}: it must be one of http, tcp, grpc and ttl`)
  }
  if (named[0] === 'ttl') return withTiming({ ttl: given['ttl'] }, given)
  return withTiming({ url: urlOf(named[0]!, given[named[0]!], address) }, given)
}

/** A check that somebody has written down, judged as if it were asked for now. */
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
      `check.timeout ${formatDuration(timeout)} is longer than check.every ${formatDuration(period)}: make it at most as long`,
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

/** The whole URL of a check that may have been given as a part of it. */
function urlOf(kind: string, value: unknown, address: string | undefined): string {
  const name = `check.${kind}`
  const schemes = kind === 'tcp' ? ['tcp'] : [kind, `${kind}s`]
  const given = value === true && kind !== 'http' ? '' : stringOf(name, value, URL_MAX)
  if (WHOLE.test(given)) {
    if (schemes.some((scheme) => given.startsWith(`${scheme}://`))) return given
    throw invalid(`${name} is ${show(given)}: it must begin with ${schemes[0]}://`)
  }
  if (address === undefined) {
    throw invalid(`${name} is ${show(value)}, but there is no address: give one, or a whole URL`)
  }
  const [, scheme, place] = /^(?:([a-z]+):\/\/)?([^/]*)/.exec(address)!
  const isSecure = kind !== 'tcp' && (scheme === 'https' || scheme === 'grpcs')
  const path = given === '' || given.startsWith('/') ? given : `/${given}`
  const port = /:\d+$/.test(place!) ? '' : portFor(scheme)
  return `${isSecure ? schemes[1] : schemes[0]}://${place}${port}${path}`
}

/** A port that the address leaves to its scheme must be written where another scheme is used. */
function portFor(scheme: string | undefined): string {
  if (scheme === 'https') return ':443'
  return scheme === 'http' ? ':80' : ''
}
