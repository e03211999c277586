import {
  type Clock,
  DEFAULT_LIMITS,
  type Duration,
  invalid,
  type Limits,
  positive,
  type Random,
  show,
  systemClock,
  systemRandom,
} from '../../port/index.ts'
import type { Grpc } from './client.ts'
import type { TransportOptions } from './transport.ts'

/** What etcd itself can do: whole seconds, two at least, and so many operations in a transaction. */
export const ETCD_LIMITS: Limits = {
  ...DEFAULT_LIMITS,
  ttlMin: 2000,
  keysPerClaim: 40,
  claimsPerLease: 1000,
  claimsPerKey: 1000,
  renewBatch: 20_000,
  page: 1000,
}

/** A request may be as large as this, in bytes: etcd takes 1.5 MiB. */
export const REQUEST_BYTES = 1_400_000

export interface EtcdStoreOptions {
  /** The module `@grpc/grpc-js`. */
  readonly grpc: Grpc
  /** Where the members are: `'10.0.0.1:2379'`, `'https://etcd-1:2379'`. Tried in turn. */
  readonly endpoints: string | readonly string[]
  /** What grpc-js is to connect with; by the endpoints' `https:` if not given, else without TLS. */
  readonly credentials?: unknown
  /** For an etcd with authentication. */
  readonly auth?: { readonly username: string; readonly password: string } | undefined
  /** What all names of this store in etcd begin with. `'leasehold/'` if not given. */
  readonly prefix?: string | undefined
  /** How long a call may take in all. 5 s if not given. */
  readonly timeout?: Duration | undefined
  /** How long one member is waited for before the next is tried. 1.5 s, or `timeout` for one. */
  readonly patience?: Duration | undefined
  /** Some limits can be made smaller, for tests; what etcd cannot do is not made possible by it. */
  readonly limits?: Partial<Limits> | undefined
  readonly clock?: Clock | undefined
  readonly random?: Random | undefined
}

export interface Settings {
  readonly prefix: string
  readonly limits: Limits
  readonly clock: Clock
  readonly random: Random
  readonly transport: TransportOptions
}

const TIMEOUT_MS = 5000
const PATIENCE_MS = 1500

export function settingsOf(options: EtcdStoreOptions): Settings {
  if (typeof options !== 'object' || options === null) {
    throw invalid(`options is ${show(options)}: give { grpc, endpoints }`)
  }
  const { grpc, clock = systemClock, random = systemRandom, auth } = options
  checkGrpc(grpc)
  const endpoints = endpointsOf(options.endpoints)
  const secure = endpoints.filter((endpoint) => endpoint.startsWith('https:'))
  if (secure.length > 0 && secure.length < endpoints.length) {
    throw invalid(`endpoints ${endpoints.join(', ')} are partly https: use TLS for all or none`)
  }
  const { createSsl, createInsecure } = grpc.credentials
  const credentials = options.credentials ?? (secure.length > 0 ? createSsl() : createInsecure())
  const timeout = positive(options.timeout ?? TIMEOUT_MS, 'timeout')
  // With one member there is no other to turn to, and asking a busy one twice helps nobody.
  const isAlone = endpoints.length === 1
  const patience = positive(options.patience ?? (isAlone ? timeout : PATIENCE_MS), 'patience')
  const addresses = endpoints.map((endpoint) => endpoint.replace(/^https?:\/\//, ''))
  return {
    prefix: prefixOf(options.prefix ?? 'leasehold/'),
    limits: { ...ETCD_LIMITS, ...options.limits },
    clock,
    random,
    transport: {
      ...{ grpc, endpoints, addresses, credentials, timeout, clock, random },
      patience: Math.min(patience, timeout),
      auth: checkAuth(auth),
    },
  }
}

function checkGrpc(grpc: Grpc): void {
  if (typeof grpc?.Client === 'function' && typeof grpc.Metadata === 'function') return
  throw invalid(
    `grpc is ${show(grpc)}: give the module itself, as in import * as grpc from '@grpc/grpc-js'`,
  )
}

function endpointsOf(given: string | readonly string[]): readonly string[] {
  const list = typeof given === 'string' ? given.split(',') : given
  if (!Array.isArray(list) || list.length === 0) {
    throw invalid(`endpoints is ${show(given)}: name at least one, such as '127.0.0.1:2379'`)
  }
  return list.map((each) => {
    const endpoint = typeof each === 'string' ? each.trim().replace(/\/$/, '') : each
    if (typeof endpoint === 'string' && ENDPOINT.test(endpoint)) return endpoint
    throw invalid(
      `endpoint ${show(each)} is no address: write 'host:2379', 'http://host:2379' or https:`,
    )
  })
}

const ENDPOINT = /^(https?:\/\/)?(\[[0-9a-fA-F:]+\]|[^\s/:@]+):\d{1,5}$/

function checkAuth(auth: EtcdStoreOptions['auth']): TransportOptions['auth'] {
  if (auth === undefined) return undefined
  if (typeof auth?.username === 'string' && typeof auth.password === 'string') return auth
  throw invalid('auth must have a username and a password, both texts')
}

function prefixOf(prefix: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it must not have.
  const isText = typeof prefix === 'string' && !/[\u0000-\u001f\u007f]/.test(prefix)
  if (isText && prefix.length > 0 && prefix.isWellFormed()) return prefix
  throw invalid(
    `prefix is ${show(prefix)}: give a text without control characters, such as 'leasehold/'`,
  )
}
