import type { Log } from '../../log/index.ts'
import type { LeaseStore } from '../../port/index.ts'
import { openLog } from '../engine-log.ts'
import { faultBy } from '../faults.ts'
import { addressOf } from '../options/address.ts'
import { checkName, type LogOptions, logSettings } from '../options/options.ts'
import { type StoreOptions, storeOn } from '../store-on.ts'
import { type EnsembleOptions, FAULTS, ZookeeperClient } from './client/index.ts'
import { ZookeeperLog } from './zookeeper-log.ts'

export interface ZookeeperLogOptions extends LogOptions, EnsembleOptions {
  /** The node that contains everything; `/leasehold` if not given. */
  readonly root?: string | undefined
  /** The largest entry, in bytes: below `jute.maxbuffer` of all servers. 1,000,000 if not given. */
  readonly entryBytes?: number | undefined
}

const faultOf = faultBy(FAULTS, 'ZooKeeper')

/** Parses `zookeeper://user:password@host:2181,host:2181/root`. */
export function zookeeperAddress(url: string): ZookeeperLogOptions {
  const { hosts, user, password = '', path } = addressOf(url)
  const auth = user ? { scheme: 'digest', credentials: `${user}:${password}` } : undefined
  return { servers: hosts.join(','), auth, root: path === '' ? undefined : `/${path}` }
}

/** Opens a log in ZooKeeper. Fulfilled after a first answer of the ensemble. */
export async function zookeeperLog(options: ZookeeperLogOptions): Promise<Log> {
  const settings = logSettings('zookeeper', options)
  const { entryBytes = 1_000_000, root = '/leasehold' } = options
  const allowed = /^(?!\/zookeeper$)(\/[\w.-]*[\w-][\w.-]*)+$/
  checkName('root', root, allowed, "a path of letters, digits, '.', '_' and '-'")
  const client = new ZookeeperClient({ ...options, ...settings })
  const log = new ZookeeperLog(client, root, {
    engine: 'zookeeper',
    durability: 'majority',
    failoverLoses: false,
    entryBytes,
    timeout: settings.timeout,
    notes: ['An acknowledged change is on the disks of a majority of the servers.'],
  })
  return openLog('ZooKeeper', settings, faultOf, () => log.open()).catch((error: unknown) => {
    client.close()
    throw error
  })
}

export type ZookeeperStoreOptions = ZookeeperLogOptions & StoreOptions

/** Opens a store on such a log: this process runs a replica of the kernel. */
export function zookeeperStore(options: ZookeeperStoreOptions): Promise<LeaseStore> {
  return storeOn('zookeeper', options, zookeeperLog)
}
