import type { Log } from '../../log/index.ts'
import { invalid, type LeaseStore, show } from '../../port/index.ts'
import { openLog } from '../engine-log.ts'
import { type FaultRule, faultBy } from '../faults.ts'
import { addressOf } from '../options/address.ts'
import { checkName, type LogOptions, logSettings } from '../options/options.ts'
import { type StoreOptions, storeOn } from '../store-on.ts'
import { Agents } from './client/index.ts'
import { ConsulLog } from './consul-log.ts'

export interface ConsulLogOptions extends LogOptions {
  /** The agents: `'http://127.0.0.1:8500'`. One is used until it fails, then the next. */
  readonly endpoints: string | readonly string[]
  /** The ACL token. It needs `key:write` for the prefix. */
  readonly token?: string | undefined
  /** All keys of this log begin with this; `'leasehold/'` if not given. */
  readonly prefix?: string | undefined
}

/** Consul's limit for a transaction is 512 KB, in base64. */
const ENTRY_BYTES = 256 * 1024

/** How long one of several agents may take. */
const AGENT_MS = 1500

const FAULTS: readonly FaultRule[] = [
  [
    /HTTP 403|ACL not found|Permission denied/,
    'forbidden',
    'Consul does not allow this: check the ACL token',
  ],
  [/HTTP 413/, 'limit-exceeded', 'the entry is too large for this Consul'],
]

/** Parses `consul://:token@host:8500,host:8500/prefix`; `consuls:` uses TLS. */
export function consulAddress(url: string): ConsulLogOptions {
  const { scheme, hosts, password, path } = addressOf(url)
  const protocol = scheme === 'consuls' ? 'https' : 'http'
  return {
    endpoints: hosts.map((host) => `${protocol}://${host}`),
    ...(password !== undefined && { token: password }),
    ...(path !== '' && { prefix: path }),
  }
}

/** Opens a log in Consul. Fulfilled after a first answer of Consul. */
export async function consulLog(options: ConsulLogOptions): Promise<Log> {
  const settings = logSettings('consul', options)
  const { timeout, clock } = settings
  const { token, prefix = 'leasehold/' } = options
  checkName('prefix', prefix, /^[\w./-]{1,128}$/, '1 to 128 letters, digits, or one of _-./')
  const endpoints = endpointsOf(options.endpoints)
  // Short enough to ask another agent within the timeout.
  const each = endpoints.length > 1 ? Math.min(timeout, AGENT_MS) : timeout
  const agents = new Agents({ endpoints, token, clock, timeout: each })
  const log = new ConsulLog(agents, prefix, {
    engine: 'consul',
    durability: 'majority',
    failoverLoses: false,
    entryBytes: ENTRY_BYTES,
    timeout,
    notes: [
      'An acknowledged change is on the disks of a majority of the Consul servers.',
      'Appends are compare-and-set: of several processes that write at once, one is first and the others try again.',
    ],
  })
  const open = async () => {
    await log.tail()
    return log
  }
  return openLog('Consul', settings, faultBy(FAULTS, 'Consul'), open)
}

export type ConsulStoreOptions = ConsulLogOptions & StoreOptions

/** Opens a store on such a log: this process runs a replica of the kernel. */
export function consulStore(options: ConsulStoreOptions): Promise<LeaseStore> {
  return storeOn('consul', options, consulLog)
}

function endpointsOf(given: string | readonly string[]): readonly string[] {
  const list = typeof given === 'string' ? given.split(',') : given
  if (!Array.isArray(list) || list.length === 0) {
    throw invalid(`endpoints is ${show(given)}: name at least one, such as 'http://127.0.0.1:8500'`)
  }
  return list.map((each) => {
    const endpoint = String(each).trim().replace(/\/$/, '')
    if (/^https?:\/\/[^\s/@]+$/.test(endpoint)) return endpoint
    throw invalid(`endpoint ${show(each)} is invalid: write 'http://host:8500'`)
  })
}
