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
import { type Auth, type Connect, connectPlainly, type Server } from './client.ts'

export interface ZookeeperStoreOptions {
  /** Where the ensemble is: `'zk1:2181,zk2:2181,zk3:2181'`. */
  readonly servers: string | readonly Server[]
  /** The node under which everything is kept. Stores with the same root share their leases. */
  readonly root?: string | undefined
  /** How a connection is made, for TLS or a proxy. Plain TCP if not given. */
  readonly connect?: Connect | undefined
  /**
   * Who this is. With it, only whoever is authenticated in the same way can use the nodes that are
   * made; without it, everyone can.
   */
  readonly auth?: Auth | undefined
  /** How long a call may take, looking for a server included. 5 s if not given. */
  readonly timeout?: Duration | undefined
  readonly limits?: Partial<Limits> | undefined
  readonly clock?: Clock | undefined
  readonly random?: Random | undefined
}

export interface Settings {
  readonly servers: readonly Server[]
  readonly root: string
  readonly connect: Connect
  readonly auth: Auth | undefined
  readonly timeout: number
  readonly limits: Limits
  readonly clock: Clock
  readonly random: Random
}

const PORT = 2181

/**
 * What fits into ZooKeeper: a transaction must be below 1 MB, so that what is ended by one is
 * bounded; and what is remembered is kept in the memory of every server.
 */
export const ZOOKEEPER_LIMITS: Limits = {
  ...DEFAULT_LIMITS,
  claimsPerLease: 1000,
  childrenPerLease: 256,
  events: 4096,
  requests: 4096,
  ended: 4096,
}

export function settingsOf(options: ZookeeperStoreOptions): Settings {
  if (typeof options !== 'object' || options === null) {
    throw invalid(`options is ${show(options)}: give an object with servers`)
  }
  const { connect = connectPlainly, auth, clock = systemClock, random = systemRandom } = options
  if (typeof connect !== 'function') {
    throw invalid(`connect is ${show(connect)}: give a function that opens a socket to a server`)
  }
  const limits = { ...ZOOKEEPER_LIMITS, ...options.limits }
  return {
    servers: serversOf(options.servers),
    root: rootOf(options.root ?? '/leasehold'),
    connect,
    auth: authOf(auth),
    timeout: positive(options.timeout ?? 5000, 'timeout'),
    // All three are in the entries of one journal.
    limits: { ...limits, requests: limits.events, ended: limits.events },
    clock,
    random,
  }
}

function serversOf(servers: ZookeeperStoreOptions['servers']): Server[] {
  const list = typeof servers === 'string' ? servers.split(',').map(serverOf) : servers
  if (!Array.isArray(list) || list.length === 0) {
    throw invalid(`servers is ${show(servers)}: name the ensemble, such as 'zk1:2181,zk2:2181'`)
  }
  for (const server of list as Server[]) {
    const { host, port } = server ?? {}
    const isPort = Number.isInteger(port) && port > 0 && port < 65_536
    if (typeof host === 'string' && host !== '' && isPort) continue
    throw invalid(`servers has ${show(server)}: write 'host:port', such as 'zk1:2181'`)
  }
  return list as Server[]
}

function serverOf(text: string): Server {
  const match = /^\s*(?:\[(.+)\]|([^:/\s]+))(?::(\d+))?\s*$/.exec(text)
  if (!match) throw invalid(`servers has ${show(text)}: write 'host:port', such as 'zk1:2181'`)
  return { host: match[1] ?? match[2]!, port: match[3] ? Number(match[3]) : PORT }
}

function rootOf(root: string): string {
  if (
    typeof root === 'string' &&
    /^(\/[\w.-]*[\w-][\w.-]*)+$/.test(root) &&
    root !== '/zookeeper'
  ) {
    return root
  }
  throw invalid(
    `root is ${show(root)}: it must be a path of letters, digits, '.', '_' and '-', such as '/leasehold'`,
  )
}

function authOf(auth: Auth | undefined): Auth | undefined {
  if (auth === undefined) return undefined
  if (typeof auth?.scheme === 'string' && typeof auth.credentials === 'string') return auth
  throw invalid("auth must have a scheme and credentials, such as 'digest' and 'user:password'")
}
