import type { Log } from 'leasehold/log'
import {
  type Clock,
  invalid,
  LeaseholdError,
  type LeaseStore,
  show,
  withoutPassword,
} from 'leasehold/port'
import type { RedisStoreOptions } from 'leasehold/redis'

/** An engine's store, and the engine's client that was opened for it. */
export interface OpenedEngine {
  readonly store: LeaseStore
  /** Closes the client, after the store is closed. */
  release(): Promise<void>
}

type Open = (address: EngineAddress, clock: Clock) => Promise<OpenedEngine>

/** By the scheme of an address. Stores and clients are loaded only when they are used. */
const ENGINES: Readonly<Record<string, Open>> = {
  redis: openRedis,
  rediss: openRedis,
  'redis+sentinel': openSentinel,
  postgres: openPostgres,
  postgresql: openPostgres,
  etcd: openEtcd,
  etcds: openEtcd,
  zookeeper: openZookeeper,
  nats: openNats,
  'azure+https': openAzure,
  'azure+http': openAzure,
}

export const ENGINE_ADDRESSES = [
  'redis://host:6379',
  'redis+sentinel://host:26379,host:26379/master',
  'postgres://user@host/database',
  'etcd://host:2379,host:2379',
  'zookeeper://host:2181,host:2181',
  'nats://host:4222,host:4222',
  'azure+https://account:key@account.blob.core.windows.net/container',
]

/** `native`: the engine decides. `log`: the server runs a kernel replica on the engine's log. */
const FORMS = ['native', 'log'] as const
type Form = (typeof FORMS)[number]

/**
 * The form if the address does not name one: the faster one for a few servers, as measured. On Redis
 * the log is faster for one server, and slower for several.
 */
const DEFAULT_FORM: Readonly<Record<'redis' | 'postgres', Form>> = {
  redis: 'native',
  postgres: 'log',
}

/** The same for both forms. So a server that changes its form is refused, and does not start empty. */
const POSTGRES_SCHEMA = 'leasehold'

export function isEngine(url: string): boolean {
  return Object.hasOwn(ENGINES, schemeOf(url))
}

export function openEngine(url: string, clock: Clock): Promise<OpenedEngine> {
  return ENGINES[schemeOf(url)]!(new EngineAddress(url), clock)
}

function schemeOf(url: string): string {
  return /^([a-z+]+):\/\//.exec(url)?.[1] ?? ''
}

/** `scheme://user:password@host:port,host:port/path?setting=value`; `URL` allows only one host. */
export class EngineAddress {
  readonly scheme: string
  readonly hosts: readonly string[]
  readonly user: string | undefined
  readonly password: string | undefined
  readonly path: string
  readonly #url: string
  readonly #settings: URLSearchParams

  constructor(url: string) {
    const parts = /^([a-z+]+):\/\/(?:([^@/]*)@)?([^/?]+)(?:\/([^?]*))?(?:\?(.*))?$/.exec(url)
    if (!parts)
      throw invalid(`store is ${show(withoutPassword(url))}, without a host: use ${examples()}`)
    const [, scheme, login, hosts, path, settings] = parts
    // A password may contain colons.
    const [, user, password] = /^([^:]*):?(.*)$/.exec(login ?? '')!
    this.#url = url
    this.scheme = scheme!
    this.hosts = hosts!.split(',')
    this.user = user ? decodeURIComponent(user) : undefined
    this.password = password ? decodeURIComponent(password) : undefined
    this.path = decodeURIComponent(path ?? '')
    this.#settings = new URLSearchParams(settings)
  }

  /** Removes one of our settings from the address; the rest belongs to the client. */
  take(name: string): string | undefined {
    const value = this.#settings.get(name) ?? undefined
    this.#settings.delete(name)
    return value
  }

  /** The address as given, without the settings that were taken. */
  get rest(): string {
    const [base] = this.#url.split('?')
    const settings = this.#settings.toString()
    return settings === '' ? base! : `${base}?${settings}`
  }

  /** Refuses settings that were not taken. */
  finish(...known: string[]): void {
    const [unknown] = this.#settings.keys()
    if (unknown === undefined) return
    throw invalid(
      `the store address has an unknown setting ${show(unknown)}; known settings: ${known.join(', ') || 'none'}`,
    )
  }
}

function examples(): string {
  return ENGINE_ADDRESSES.map((address) => `'${address}'`).join(', ')
}

async function openRedis(address: EngineAddress, clock: Clock): Promise<OpenedEngine> {
  const namespace = address.take('namespace')
  const replicas = wholeNumber(address, 'replicas')
  const form = formOf(address, 'redis')
  const { Redis } = await load('ioredis', () => import('ioredis'))
  return overRedis(new Redis(address.rest), { namespace, replicas, clock }, form)
}

async function openSentinel(address: EngineAddress, clock: Clock): Promise<OpenedEngine> {
  const namespace = address.take('namespace')
  const replicas = wholeNumber(address, 'replicas')
  const form = formOf(address, 'redis')
  address.finish('namespace', 'replicas', 'form')
  if (address.path === '') {
    throw invalid(
      "store 'redis+sentinel://…' has no master name: add it after the hosts, as in /mymaster",
    )
  }
  const { Redis } = await load('ioredis', () => import('ioredis'))
  const sentinels = address.hosts.map((host) => hostAndPort(host, 26_379))
  const { user, password, path: name } = address
  const login = { ...(user && { username: user }), ...(password && { password }) }
  return overRedis(new Redis({ sentinels, name, ...login }), { namespace, replicas, clock }, form)
}

async function overRedis(
  client: import('ioredis').Redis,
  options: RedisStoreOptions,
  form: Form,
): Promise<OpenedEngine> {
  // Without a listener, ioredis prints errors. Calls fail later, without the connection's reason.
  let connectionError: NodeJS.ErrnoException | undefined
  client.on('error', (error) => {
    connectionError = error
  })
  const release = async () => client.disconnect()
  const { redisLog, redisStore } = await import('leasehold/redis')
  const opened =
    form === 'log' ? onLog(redisLog(client, options), options.clock) : redisStore(client, options)
  const opening = opened.catch((error: LeaseholdError) => {
    if (!connectionError || error.message.includes(connectionError.message)) throw error
    const reason = connectionError.message || connectionError.code
    throw new LeaseholdError(error.code, `${error.message} (connection error: ${reason})`)
  })
  return { store: await orRelease(opening, release), release }
}

async function openPostgres(address: EngineAddress, clock: Clock): Promise<OpenedEngine> {
  const schema = address.take('schema') ?? POSTGRES_SCHEMA
  const listen = address.take('listen') !== 'false'
  const form = formOf(address, 'postgres')
  const { default: pg } = await load('pg', () => import('pg'))
  const { postgresLog, postgresStore } = await import('leasehold/postgres')
  const pool = new pg.Pool({ connectionString: address.rest, max: 8 })
  pool.on('error', () => {})
  const release = () => pool.end()
  const options = { schema, listen, clock }
  const opening =
    form === 'log' ? onLog(postgresLog(pool, options), clock) : postgresStore(pool, options)
  return { store: await orRelease(opening, release), release }
}

async function openEtcd(address: EngineAddress, clock: Clock): Promise<OpenedEngine> {
  address.finish()
  const { etcdAddress, etcdStore } = await import('leasehold/etcd')
  const store = await etcdStore({ ...etcdAddress(address.rest), clock })
  return { store, release: async () => {} }
}

async function openZookeeper(address: EngineAddress, clock: Clock): Promise<OpenedEngine> {
  address.finish()
  const { zookeeperAddress, zookeeperStore } = await import('leasehold/zookeeper')
  const store = await zookeeperStore({ ...zookeeperAddress(address.rest), clock })
  return { store, release: async () => {} }
}

async function openNats(address: EngineAddress, clock: Clock): Promise<OpenedEngine> {
  const replicas = wholeNumber(address, 'replicas')
  address.finish('replicas')
  const { connect } = await load('@nats-io/transport-node', () => import('@nats-io/transport-node'))
  const { natsStore } = await import('leasehold/nats')
  const { hosts, user, password, path } = address
  const servers = [...hosts]
  const login = { ...(user !== undefined && { user, pass: password ?? '' }) }
  const client = await connect({ servers, ...login, maxReconnectAttempts: -1 }).catch(
    (error: Error) => {
      const message = `cannot reach NATS at ${hosts.join(', ')}: ${error.message}. Is it running?`
      throw new LeaseholdError('timeout', message, { cause: error })
    },
  )
  const release = () => client.close()
  const options = { ...(path !== '' && { name: path }), replicas, clock }
  return { store: await orRelease(natsStore(client, options), release), release }
}

async function openAzure(address: EngineAddress, clock: Clock): Promise<OpenedEngine> {
  const { azureStore } = await import('leasehold/azure')
  return { store: await azureStore(address.rest, { clock }), release: async () => {} }
}

async function orRelease(
  opening: Promise<LeaseStore>,
  release: () => Promise<unknown>,
): Promise<LeaseStore> {
  try {
    return await opening
  } catch (error) {
    await release()
    throw error
  }
}

function formOf(address: EngineAddress, engine: keyof typeof DEFAULT_FORM): Form {
  const named = address.take('form') ?? DEFAULT_FORM[engine]
  const form = FORMS.find((each) => each === named)
  if (form) return form
  throw invalid(`form in the store address is ${show(named)}: use ${FORMS.join(' or ')}`)
}

async function onLog(log: Promise<Log>, clock: Clock | undefined): Promise<LeaseStore> {
  const { replicaStore } = await import('leasehold/replica')
  return replicaStore(await log, { clock })
}

function wholeNumber(address: EngineAddress, name: string): number | undefined {
  const digits = address.take(name)
  if (digits === undefined) return undefined
  if (/^\d+$/.test(digits)) return Number(digits)
  throw invalid(`${name} in the store address is ${show(digits)}: use a whole number`)
}

function hostAndPort(address: string, defaultPort: number): { host: string; port: number } {
  const [host, port] = address.split(':')
  return { host: host!, port: Number(port ?? defaultPort) }
}

async function load<Module>(name: string, start: () => Promise<Module>): Promise<Module> {
  try {
    return await start()
  } catch (error) {
    throw new LeaseholdError(
      'unsupported',
      `this store needs the package ${name}, which cannot be loaded: ${(error as Error).message}. Install it beside leasehold-server`,
      { cause: error },
    )
  }
}
