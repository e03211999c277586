import {
  type Clock,
  checkNames,
  DEFAULT_LIMITS,
  type Duration,
  invalid,
  knownNames,
  type Limits,
  positive,
  type Random,
  show,
  systemClock,
  systemRandom,
} from '../../port/index.ts'
import { type Connection, connectionOf, type PostgresClient } from './client.ts'

export interface PostgresStoreOptions {
  /** The schema of the store, for nothing else. Default: `leasehold`. */
  readonly schema?: string | undefined
  /**
   * Whether to create the schema, or bring it up to date, when the store is opened. Default: true. With
   * false it is only checked: run what `postgresMigration()` prints first.
   */
  readonly migrate?: boolean | undefined
  /**
   * How changes are reported. True (default): by LISTEN, on one connection of the client. Another
   * client: by LISTEN on one of its connections, if the first client uses a pooler that cannot
   * LISTEN. False: nothing is pushed, and the store polls every `poll`.
   */
  readonly listen?: boolean | PostgresClient | undefined
  /**
   * How often to poll for changes: 5 s with LISTEN, in case a notification was lost, and 100 ms
   * without, which is then how late a hand-over can be.
   */
  readonly poll?: Duration | undefined
  /** How long a call may take, and the database be away before watches are interrupted. Default: 5 s. */
  readonly timeout?: Duration | undefined
  readonly limits?: Partial<Limits> | undefined
  readonly clock?: Clock | undefined
  readonly random?: Random | undefined
}

const POSTGRES_STORE_OPTIONS = knownNames<PostgresStoreOptions>({
  schema: true,
  migrate: true,
  listen: true,
  poll: true,
  timeout: true,
  limits: true,
  clock: true,
  random: true,
})

export interface Settings {
  readonly connection: Connection
  /** Where to listen; `undefined` for nowhere. */
  readonly listener: Connection | undefined
  readonly schema: string
  readonly migrate: boolean
  readonly poll: number
  readonly timeout: number
  readonly limits: Limits
  readonly clock: Clock
  readonly random: Random
}

const NAME = /^[a-z_][a-z0-9_]*$/
const NAME_MAX = 48

export function settingsOf(client: PostgresClient, options: PostgresStoreOptions): Settings {
  checkNames('postgresStore', options, POSTGRES_STORE_OPTIONS)
  const { listen = true, clock = systemClock, random = systemRandom } = options
  const connection = connectionOf(client)
  if (listen === true) checkRoom(client)
  return {
    connection,
    listener: listenerOf(connection, listen),
    schema: schemaOf(options.schema),
    migrate: options.migrate ?? true,
    poll: positive(options.poll ?? (listen === false ? 100 : 5000), 'poll'),
    timeout: positive(options.timeout ?? 5000, 'timeout'),
    limits: { ...DEFAULT_LIMITS, ...options.limits },
    clock,
    random,
  }
}

export function schemaOf(schema = 'leasehold'): string {
  if (typeof schema === 'string' && schema.length <= NAME_MAX && NAME.test(schema)) return schema
  throw invalid(
    `schema is ${show(schema)}: use lower-case letters, digits and _, at most ${NAME_MAX} of them`,
  )
}

/** The channel of the store's notifications. */
export function channelOf(schema: string): string {
  return `${schema}_news`
}

/** One connection listens and does nothing else. */
function checkRoom(client: PostgresClient): void {
  const { options } = client as { options?: { max?: unknown } }
  if (options?.max !== 1 || 'unsafe' in client) return
  throw invalid(
    'client is a pool of 1 connection, which would do nothing but listen: give it at least 2 (max), or open the store with listen: false',
  )
}

function listenerOf(
  connection: Connection,
  listen: boolean | PostgresClient,
): Connection | undefined {
  if (typeof listen !== 'boolean') return connectionOf(listen, 'listen')
  return listen ? connection : undefined
}
