import { existsSync } from 'node:fs'
import { type Command, Option } from 'commander'
import type { Leasehold } from 'leasehold'
import {
  type Duration,
  isLeaseholdError,
  LeaseholdError,
  type LeaseStore,
  milliseconds,
  show,
  systemClock,
} from 'leasehold/port'
import { remoteStore } from 'leasehold/remote'
import { readSmallFile } from '../config/index.ts'
import { DEFAULT_HOST, DEFAULT_PORT } from '../config/listen-address.ts'
import { folderOf, openStore } from '../stores/index.ts'

/** The options that `withConnectionOptions` adds to a command. */
export interface ConnectionFlags {
  readonly server?: string | undefined
  readonly accessToken?: string | undefined
  /** The deprecated spelling of `accessToken`. */
  readonly token?: string | undefined
  readonly ca?: string | undefined
  readonly cert?: string | undefined
  readonly key?: string | undefined
  readonly store?: string | undefined
  readonly timeout: string
  readonly json?: boolean | undefined
}

export interface Connection {
  readonly store: LeaseStore
  /** The server or the store, for people. */
  readonly name: string
  /** The user, recorded with forced changes. */
  readonly by: string
  close(): Promise<void>
}

const DEFAULT_URL = `http://${DEFAULT_HOST}:${DEFAULT_PORT}`

/** Adds the options to reach a server, or a store without a server. */
export function withConnectionOptions(command: Command): Command {
  return command
    .option('--server <url>', `the server [LEASEHOLD_URL] (default: ${DEFAULT_URL})`)
    .option(
      '--access-token <token>',
      'the access token; safer in the environment, where other users cannot see it [LEASEHOLD_ACCESS_TOKEN]',
    )
    .addOption(new Option('--token <token>', 'deprecated: use --access-token').hideHelp())
    .option(
      '--ca <file>',
      "for https: the CA of the server's certificate, in PEM [LEASEHOLD_CLIENT_CA]",
    )
    .option('--cert <file>', 'for mutual TLS: the client certificate [LEASEHOLD_CLIENT_CERT]')
    .option('--key <file>', 'for mutual TLS: the key of the certificate [LEASEHOLD_CLIENT_KEY]')
    .option(
      '--store <url>',
      "use a store directly, without a server: 'file:<folder>', or an engine ('redis://…', 'postgres://…', 'etcd://…', 'consul://…', 'zookeeper://…', 'nats://…', 'azure+https://…')",
    )
    .option('--timeout <duration>', 'how long to wait for an answer', '5s')
}

/**
 * Opens the store that the flags name, runs `work`, and closes the store. Only a command that
 * `creates` something may create the folder of a store: to look into a wrong one is an error.
 */
export async function withStore<Result>(
  flags: ConnectionFlags,
  work: (connection: Connection) => Promise<Result>,
  creates = false,
): Promise<Result> {
  try {
    const connection = await connect(flags, creates)
    try {
      return await work(connection)
    } finally {
      await connection.close()
    }
  } catch (error) {
    throw withAccessTokenAdvice(error, flags)
  }
}

/** Without an access token, replaces the server's advice about HTTP headers with ours. */
function withAccessTokenAdvice(error: unknown, flags: ConnectionFlags): unknown {
  const isGiven = accessTokenOf(flags) ?? flags.cert ?? process.env['LEASEHOLD_CLIENT_CERT']
  if (isGiven || !isLeaseholdError(error, 'unauthenticated')) return error
  return new LeaseholdError(
    'unauthenticated',
    'this server requires an access token: set LEASEHOLD_ACCESS_TOKEN, or use --access-token, which other users of this machine can see',
    { cause: error },
  )
}

/** LEASEHOLD_AUTH and --token are deprecated. LEASEHOLD_TOKEN is a fencing token, not this. */
function accessTokenOf({ accessToken, token }: ConnectionFlags): string | undefined {
  const { LEASEHOLD_ACCESS_TOKEN, LEASEHOLD_AUTH } = process.env
  return accessToken ?? token ?? (LEASEHOLD_ACCESS_TOKEN || LEASEHOLD_AUTH || undefined)
}

/** Like `withStore`, with the recipes on top. */
export function withLeasehold<Result>(
  flags: ConnectionFlags,
  holder: string | undefined,
  work: (leasehold: Leasehold, connection: Connection) => Promise<Result>,
  creates = false,
): Promise<Result> {
  const run = (connection: Connection) =>
    withRecipes(connection, flags, holder, (leasehold) => work(leasehold, connection))
  return withStore(flags, run, creates)
}

/** Loads the recipes, which most commands do without, and runs `work` with them. */
export async function withRecipes<Result>(
  { store }: Connection,
  flags: ConnectionFlags,
  holder: string | undefined,
  work: (leasehold: Leasehold) => Promise<Result>,
): Promise<Result> {
  const recipes = await import('leasehold')
  const leasehold = await recipes.Leasehold.open(store, { holder, timeout: flags.timeout as '5s' })
  try {
    return await work(leasehold)
  } finally {
    await leasehold.close()
  }
}

async function connect(flags: ConnectionFlags, creates: boolean): Promise<Connection> {
  if (flags.store !== undefined) {
    if (flags.server !== undefined) {
      throw new LeaseholdError(
        'invalid-argument',
        `use --server ${show(flags.server)} or --store ${show(flags.store)}, not both`,
      )
    }
    if (!creates && flags.store.startsWith('file:') && !existsSync(folderOf(flags.store))) {
      throw new LeaseholdError(
        'invalid-argument',
        `--store is ${show(flags.store)}: there is no store in ${folderOf(flags.store)}. Name the folder that a server uses, or start one on it`,
      )
    }
    const timeout = milliseconds(flags.timeout as Duration, '--timeout')
    const { store, data, close } = await openStore(flags.store, systemClock, timeout)
    return { store, name: data, by: userName(), close }
  }
  return openRemote(flags)
}

/** Opens the server that the flags name. With `tied`, all leases end with the connection. */
export async function openRemote(flags: ConnectionFlags, tied = false): Promise<Connection> {
  const { env } = process
  const url = flags.server ?? (env['LEASEHOLD_URL'] || DEFAULT_URL)
  const ca = pem('ca', flags.ca ?? env['LEASEHOLD_CLIENT_CA'])
  const cert = pem('cert', flags.cert ?? env['LEASEHOLD_CLIENT_CERT'])
  const key = pem('key', flags.key ?? env['LEASEHOLD_CLIENT_KEY'])
  const store = await remoteStore(url, {
    clock: systemClock,
    timeout: flags.timeout as '5s',
    accessToken: accessTokenOf(flags),
    tls: { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) },
    tied,
  })
  return { store, name: url, by: userName(), close: () => store.close() }
}

function userName(): string {
  const { env } = process
  return `${env['USER'] || env['LOGNAME'] || 'somebody'} by the command line`
}

function pem(name: string, file: string | undefined): Buffer | undefined {
  if (file === undefined || file === '') return undefined
  try {
    return readSmallFile(file).content
  } catch (error) {
    throw new LeaseholdError(
      'invalid-argument',
      `--${name} ${show(file)} cannot be read: ${(error as Error).message}. Use a PEM file`,
    )
  }
}
