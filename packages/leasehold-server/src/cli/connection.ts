import type { Command } from 'commander'
import { Leasehold } from 'leasehold'
import {
  isLeaseholdError,
  LeaseholdError,
  type LeaseStore,
  show,
  systemClock,
} from 'leasehold/port'
import { remoteStore } from 'leasehold/remote'
import { readWhole } from '../config/index.ts'
import { DEFAULT_HOST, DEFAULT_PORT } from '../server.ts'
import { openStore } from '../stores/index.ts'

/** How a command reaches the leases: what `connecting` adds to it. */
export interface ConnectionFlags {
  readonly server?: string | undefined
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
  /** The server, or the store, for people. */
  readonly name: string
  /** Who asks, for what is done by force. */
  readonly who: string
  close(): Promise<void>
}

const DEFAULT_URL = `http://${DEFAULT_HOST}:${DEFAULT_PORT}`

/** A command that asks a server, or a store without one. */
export function connecting(command: Command): Command {
  return command
    .option('--server <url>', `the server to ask [LEASEHOLD_URL] (default: ${DEFAULT_URL})`)
    .option(
      '--token <token>',
      'who asks; better in the environment, where others cannot see it [LEASEHOLD_AUTH]',
    )
    .option(
      '--ca <file>',
      "for https: the authorities of the server's certificate, in PEM [LEASEHOLD_CLIENT_CA]",
    )
    .option('--cert <file>', 'for mutual TLS: the certificate of who asks [LEASEHOLD_CLIENT_CERT]')
    .option('--key <file>', 'for mutual TLS: its key [LEASEHOLD_CLIENT_KEY]')
    .option(
      '--store <url>',
      "works on 'file:<folder>', 'redis://…', 'postgres://…', 'etcd://…' or 'zookeeper://…' itself, without a server",
    )
    .option('--timeout <duration>', 'how long to wait for an answer', '5s')
}

/** Opens what the flags name, has the work done, and closes it. */
export async function withStore<Result>(
  flags: ConnectionFlags,
  work: (connection: Connection) => Promise<Result>,
): Promise<Result> {
  try {
    const connection = await connect(flags)
    try {
      return await work(connection)
    } finally {
      await connection.close()
    }
  } catch (error) {
    throw withoutToken(error, flags)
  }
}

/** The server says how a token is sent over the wire: here somebody wants to know how it is given. */
function withoutToken(error: unknown, { token, cert }: ConnectionFlags): unknown {
  const { env } = process
  const isGiven = token ?? cert ?? (env['LEASEHOLD_AUTH'] || env['LEASEHOLD_CLIENT_CERT'])
  if (isGiven || !isLeaseholdError(error, 'unauthenticated')) return error
  return new LeaseholdError(
    'unauthenticated',
    'this server wants a token: put it into LEASEHOLD_AUTH, or give it by --token, which others on this machine can see',
    { cause: error },
  )
}

/** The same, with recipes on top. */
export function withLeasehold<Result>(
  flags: ConnectionFlags,
  holder: string | undefined,
  work: (leasehold: Leasehold, connection: Connection) => Promise<Result>,
): Promise<Result> {
  return withStore(flags, async (connection) => {
    const callTimeout = flags.timeout as '5s'
    const leasehold = await Leasehold.open(connection.store, { holder, callTimeout })
    try {
      return await work(leasehold, connection)
    } finally {
      await leasehold.close()
    }
  })
}

async function connect(flags: ConnectionFlags): Promise<Connection> {
  const { env } = process
  const who = `${env['USER'] || env['LOGNAME'] || 'somebody'} by the command line`
  if (flags.store !== undefined) {
    if (flags.server !== undefined) {
      throw new LeaseholdError(
        'invalid-argument',
        `both --server ${show(flags.server)} and --store ${show(flags.store)} are given: leave one out`,
      )
    }
    const { store, data, close } = await openStore(flags.store)
    return { store, name: data, who, close }
  }
  const url = flags.server ?? (env['LEASEHOLD_URL'] || DEFAULT_URL)
  const ca = pem('ca', flags.ca ?? env['LEASEHOLD_CLIENT_CA'])
  const cert = pem('cert', flags.cert ?? env['LEASEHOLD_CLIENT_CERT'])
  const key = pem('key', flags.key ?? env['LEASEHOLD_CLIENT_KEY'])
  const store = await remoteStore(url, {
    clock: systemClock,
    timeout: flags.timeout as '5s',
    token: flags.token ?? (env['LEASEHOLD_AUTH'] || undefined),
    tls: { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) },
  })
  return { store, name: url, who, close: () => store.close() }
}

function pem(name: string, file: string | undefined): Buffer | undefined {
  if (file === undefined || file === '') return undefined
  try {
    return readWhole(file).content
  } catch (error) {
    throw new LeaseholdError(
      'invalid-argument',
      `--${name} ${show(file)} cannot be read (${(error as Error).message}): name a PEM file`,
    )
  }
}
