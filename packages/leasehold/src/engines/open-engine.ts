import type { Log } from '../log/index.ts'
import type { NatsClient } from '../logs/nats/index.ts'
import type { PostgresClient } from '../logs/postgres/index.ts'
import type { RedisClient, RedisStoreOptions } from '../logs/redis/index.ts'
import {
  type Clock,
  invalid,
  LeaseholdError,
  type LeaseStore,
  type Random,
  show,
} from '../port/index.ts'
import { EngineAddress } from './engine-address.ts'
import { type LoadPackage, loadPackage } from './load-package.ts'

/** An engine's store, and the engine's client that was opened for it. */
export interface OpenedEngine {
  readonly store: LeaseStore
  /** Closes the client, after the store is closed. */
  release(): Promise<void>
}

export interface EngineOptions {
  readonly clock?: Clock | undefined
  readonly random?: Random | undefined
  /** How long a call may take, in milliseconds. */
  readonly timeout?: number | undefined
  /** Loads the engine's client from another place than beside this package. */
  readonly load?: LoadPackage | undefined
}

type Common = Omit<EngineOptions, 'load'>
type Open = (address: EngineAddress, options: EngineOptions) => Promise<OpenedEngine>

/** The parts of `ioredis`, `pg` and `@nats-io/transport-node` that are used here. */
interface Ioredis {
  readonly Redis: new (
    address: string | object,
  ) => RedisClient & {
    on(event: 'error', listener: (error: NodeJS.ErrnoException) => void): unknown
    disconnect(): void
  }
}
interface Pg {
  readonly default: {
    readonly Pool: new (
      options: object,
    ) => PostgresClient & {
      on(event: 'error', listener: () => void): unknown
      end(): Promise<void>
    }
  }
}
interface NatsTransport {
  connect(options: object): Promise<NatsClient & { close(): Promise<void> }>
}

/** By the scheme of an address. Stores and clients are loaded only when they are used. */
const ENGINES: Readonly<Record<string, Open>> = {
  redis: openRedis,
  rediss: openRedis,
  'redis+sentinel': openSentinel,
  postgres: openPostgres,
  postgresql: openPostgres,
  etcd: openEtcd,
  etcds: openEtcd,
  consul: openConsul,
  consuls: openConsul,
  zookeeper: openZookeeper,
  nats: openNats,
  'azure+https': openAzure,
  'azure+http': openAzure,
}

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

/** Opens the store on an engine that an address names, with a client of its own for the engine. */
export async function openEngine(url: string, options: EngineOptions = {}): Promise<OpenedEngine> {
  return ENGINES[schemeOf(url)]!(new EngineAddress(url), options)
}

function schemeOf(url: string): string {
  return /^([a-z+]+):\/\//.exec(url)?.[1] ?? ''
}

async function openRedis(
  address: EngineAddress,
  { load, ...common }: EngineOptions,
): Promise<OpenedEngine> {
  const namespace = address.take('namespace')
  const replicas = wholeNumber(address, 'replicas')
  const form = formOf(address, 'redis')
  const { Redis } = await loadPackage<Ioredis>('ioredis', load)
  return overRedis(new Redis(address.rest), { namespace, replicas }, common, form)
}

async function openSentinel(
  address: EngineAddress,
  { load, ...common }: EngineOptions,
): Promise<OpenedEngine> {
  const namespace = address.take('namespace')
  const replicas = wholeNumber(address, 'replicas')
  const form = formOf(address, 'redis')
  address.finish('namespace', 'replicas', 'form')
  if (address.path === '') {
    throw invalid(
      "store 'redis+sentinel://…' has no master name: add it after the hosts, as in /mymaster",
    )
  }
  const { Redis } = await loadPackage<Ioredis>('ioredis', load)
  const sentinels = address.hosts.map((host) => hostAndPort(host, 26_379))
  const { user, password, path: name } = address
  const login = { ...(user && { username: user }), ...(password && { password }) }
  const client = new Redis({ sentinels, name, ...login })
  return overRedis(client, { namespace, replicas }, common, form)
}

async function overRedis(
  client: InstanceType<Ioredis['Redis']>,
  own: Pick<RedisStoreOptions, 'namespace' | 'replicas'>,
  common: Common,
  form: Form,
): Promise<OpenedEngine> {
  // Without a listener, ioredis prints errors. Calls fail later, without the connection's reason.
  let connectionError: NodeJS.ErrnoException | undefined
  client.on('error', (error) => {
    connectionError = error
  })
  const release = async () => client.disconnect()
  const { redisLog, redisStore } = await import('../logs/redis/index.ts')
  const options = { ...own, ...common }
  const opened =
    form === 'log' ? onLog(redisLog(client, options), common) : redisStore(client, options)
  const opening = opened.catch((error: LeaseholdError) => {
    if (!connectionError || error.message.includes(connectionError.message)) throw error
    const reason = connectionError.message || connectionError.code
    throw new LeaseholdError(error.code, `${error.message} (connection error: ${reason})`)
  })
  return { store: await orRelease(opening, release), release }
}

async function openPostgres(
  address: EngineAddress,
  { load, ...common }: EngineOptions,
): Promise<OpenedEngine> {
  const schema = address.take('schema') ?? POSTGRES_SCHEMA
  const listen = address.take('listen') !== 'false'
  const form = formOf(address, 'postgres')
  const { default: pg } = await loadPackage<Pg>('pg', load)
  const { postgresLog, postgresStore } = await import('../logs/postgres/index.ts')
  const pool = new pg.Pool({ connectionString: address.rest, max: 8 })
  pool.on('error', () => {})
  const release = () => pool.end()
  const options = { schema, listen, ...common }
  const opening =
    form === 'log' ? onLog(postgresLog(pool, options), common) : postgresStore(pool, options)
  return { store: await orRelease(opening, release), release }
}

async function openEtcd(
  address: EngineAddress,
  { load, ...common }: EngineOptions,
): Promise<OpenedEngine> {
  address.finish()
  const { etcdAddress, etcdStore } = await import('../logs/etcd/index.ts')
  const store = await etcdStore({ ...etcdAddress(address.rest), ...common })
  return { store, release: async () => {} }
}

async function openConsul(
  address: EngineAddress,
  { load, ...common }: EngineOptions,
): Promise<OpenedEngine> {
  address.finish()
  const { consulAddress, consulStore } = await import('../logs/consul/index.ts')
  const store = await consulStore({ ...consulAddress(address.rest), ...common })
  return { store, release: async () => {} }
}

async function openZookeeper(
  address: EngineAddress,
  { load, ...common }: EngineOptions,
): Promise<OpenedEngine> {
  address.finish()
  const { zookeeperAddress, zookeeperStore } = await import('../logs/zookeeper/index.ts')
  const store = await zookeeperStore({ ...zookeeperAddress(address.rest), ...common })
  return { store, release: async () => {} }
}

async function openNats(
  address: EngineAddress,
  { load, ...common }: EngineOptions,
): Promise<OpenedEngine> {
  const replicas = wholeNumber(address, 'replicas')
  address.finish('replicas')
  const { connect } = await loadPackage<NatsTransport>('@nats-io/transport-node', load)
  const { natsStore } = await import('../logs/nats/index.ts')
  const { hosts, user, password, path } = address
  const servers = [...hosts]
  const login = { ...(user !== undefined && { user, pass: password ?? '' }) }
  const limit = common.timeout !== undefined && { timeout: common.timeout }
  const options = { servers, ...login, ...limit, maxReconnectAttempts: -1 }
  const client = await connect(options).catch((error: Error) => {
    const message = `cannot reach NATS at ${hosts.join(', ')}: ${error.message}. Is it running?`
    throw new LeaseholdError('timeout', message, { cause: error })
  })
  const release = () => client.close()
  const own = { ...(path !== '' && { name: path }), replicas, ...common }
  return { store: await orRelease(natsStore(client, own), release), release }
}

async function openAzure(
  address: EngineAddress,
  { load, ...common }: EngineOptions,
): Promise<OpenedEngine> {
  const { azureStore } = await import('../logs/azure/index.ts')
  return { store: await azureStore(address.rest, common), release: async () => {} }
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

async function onLog(opening: Promise<Log>, options: Common): Promise<LeaseStore> {
  // Awaited before the import: a rejection that nobody awaits yet would end the process.
  const log = await opening
  const { replicaStore } = await import('../replica/index.ts')
  return replicaStore(log, options)
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
