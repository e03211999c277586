import type { SecureContextOptions } from 'node:tls'
import type { Log } from '../../log/index.ts'
import { type Duration, invalid, type LeaseStore, positive, show } from '../../port/index.ts'
import { openLog } from '../engine-log.ts'
import { faultBy } from '../faults.ts'
import { addressOf } from '../options/address.ts'
import { checkName, type LogOptions, logSettings } from '../options/options.ts'
import { type StoreOptions, storeOn } from '../store-on.ts'
import { EtcdClient } from './client/index.ts'
import { EtcdLog } from './etcd-log.ts'

export interface EtcdLogOptions extends LogOptions {
  /** The members: `'10.0.0.1:2379'`, `'https://etcd-1:2379'`. One is used until it fails, then the next. */
  readonly endpoints: string | readonly string[]
  /** Certificates for `https:`, as `node:tls` takes them. */
  readonly tls?: SecureContextOptions | undefined
  /** The user, if etcd has authentication enabled. */
  readonly auth?: { readonly username: string; readonly password: string } | undefined
  /** All keys of this log begin with this; `'leasehold/'` if not given. */
  readonly prefix?: string | undefined
  /** How long a call waits for one of several members before it tries the next. 1.5 s if not given. */
  readonly memberTimeout?: Duration | undefined
  /** @deprecated Use `memberTimeout`. */
  readonly patience?: Duration | undefined
  /** The largest entry, in bytes: below etcd's `--max-request-bytes`. 1 MiB if not given. */
  readonly entryBytes?: number | undefined
}

/** Parses `etcd://user:password@host:2379,host:2379/prefix`; `etcds:` uses TLS. */
export function etcdAddress(url: string): EtcdLogOptions {
  const { scheme, hosts, user, password, path } = addressOf(url)
  const protocol = scheme === 'etcds' ? 'https' : 'http'
  return {
    endpoints: hosts.map((host) => `${protocol}://${host}`),
    ...(user !== undefined && { auth: { username: user, password: password ?? '' } }),
    ...(path !== '' && { prefix: path }),
  }
}

/** Opens a log in etcd. Fulfilled after a first answer of etcd. */
export async function etcdLog(options: EtcdLogOptions): Promise<Log> {
  const settings = logSettings('etcd', options)
  const { timeout, clock, random } = settings
  const { tls, auth, prefix = 'leasehold/', patience = 1500, entryBytes = 1 << 20 } = options
  const { memberTimeout = patience } = options
  checkName('prefix', prefix, /^[^\p{Cc}\p{Cs}]+$/u, 'a string without control characters')
  const client = new EtcdClient({
    ...{ endpoints: endpointsOf(options.endpoints), tls, auth, timeout, clock },
    memberTimeout: Math.min(positive(memberTimeout, 'memberTimeout'), timeout),
  })
  const log = new EtcdLog(client, prefix, random.id(), {
    engine: 'etcd',
    durability: 'majority',
    failoverLoses: false,
    entryBytes,
    timeout,
    notes: [
      'An acknowledged change is on the disks of a majority of the members.',
      'etcd does not free the space of old entries until it is compacted: set --auto-compaction-retention.',
    ],
  })
  const open = async () => {
    await log.tail()
    return log
  }
  return openLog('etcd', settings, faultBy([], 'etcd'), open).catch((error: unknown) => {
    client.close()
    throw error
  })
}

export type EtcdStoreOptions = EtcdLogOptions & StoreOptions

/** Opens a store on such a log: this process runs a replica of the kernel. */
export function etcdStore(options: EtcdStoreOptions): Promise<LeaseStore> {
  return storeOn('etcd', options, etcdLog)
}

const ENDPOINT = /^(https?:\/\/)?(\[[0-9a-fA-F:]+\]|[^\s/:@]+):\d{1,5}$/

function endpointsOf(given: string | readonly string[]): readonly string[] {
  const list = typeof given === 'string' ? given.split(',') : given
  if (!Array.isArray(list) || list.length === 0) {
    throw invalid(`endpoints is ${show(given)}: name at least one, such as '127.0.0.1:2379'`)
  }
  return list.map((each) => {
    const endpoint = String(each).trim().replace(/\/$/, '')
    if (ENDPOINT.test(endpoint)) return /^http/.test(endpoint) ? endpoint : `http://${endpoint}`
    throw invalid(`endpoint ${show(each)} is invalid: write 'host:2379' or 'https://host:2379'`)
  })
}
