import { join } from 'node:path'
import { type Clock, systemClock, withoutPassword } from 'leasehold/port'
import { type Logger, pino } from 'pino'
import { AccessTokens, CREATE_ADMINISTRATOR } from './access/index.ts'
import {
  AuditLog,
  type Config,
  checkExposure,
  type Flags,
  isOpenToAll,
  keepSecretsKey,
  loadConfig,
  NONE,
  readSecretsKey,
  readTls,
  warnOfOpenDns,
} from './config/index.ts'
import { whenUnused } from './operations/when-unused.ts'
import { createServer, type LeaseServer, type ServerOptions } from './server.ts'
import { type OpenedStore, openStore, SECRETS_KEY } from './stores/index.ts'

const STOP_SIGNALS = ['SIGTERM', 'SIGINT'] as const

/** Serves until SIGTERM or SIGINT; a second signal ends the process at once. */
export async function serve(flags: Flags): Promise<void> {
  const config = loadConfig(flags, process.env)
  const logger = pino({ level: config.values.logLevel, name: 'leasehold' }, pino.destination(2))
  const opened = await openStore(config.values.store)
  const { name, data } = opened
  const { server, audit } = await begin(config, opened, logger).catch(async (error) => {
    await opened.close()
    throw explain(error, config)
  })
  const stop = async (signal: string) => {
    logger.info({ signal }, 'stopping')
    await server.close()
    await opened.close()
    audit?.close()
    logger.info('stopped')
  }
  const onSignal = (signal: NodeJS.Signals) => {
    // Without listeners, the next signal ends the process.
    for (const each of STOP_SIGNALS) process.off(each, onSignal)
    stop(signal).catch(fail)
  }
  for (const signal of STOP_SIGNALS) process.on(signal, onSignal)
  const { exitWhenUnused } = config.values
  if (exitWhenUnused !== undefined) {
    whenUnused(server, systemClock, exitWhenUnused, () => stop('unused').catch(fail))
  }
  process.on('SIGHUP', () => reload(config, server, audit, logger))
  process.stdout.write(`Leasehold listens on ${server.url}\n  store: ${name}\n  data:  ${data}\n`)
  logger.info({ url: server.url, store: name, data }, 'listening')
}

/** Prints the error in one line and exits. */
export function fail(error: unknown): never {
  process.stderr.write(`leasehold: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exit(1)
}

async function begin(
  config: Config,
  { store, folder, shared }: OpenedStore,
  logger: Logger,
): Promise<{ readonly server: LeaseServer; readonly audit: AuditLog | undefined }> {
  const { host, port, connections, drain } = config.values
  // Logged after the start, so that a failed start prints only its reason.
  const warnings: string[] = []
  const warn = (message: string) => void warnings.push(message)
  const tls = readTls(config, warn)
  const tokens = await AccessTokens.open(store, systemClock)
  tokens.close()
  if (tokens.lacksAdministrator) {
    warn(
      `no access token can administer, so nobody can create or revoke access tokens. Stop this server, and run '${CREATE_ADMINISTRATOR} --store ${withoutPassword(config.values.store)}'`,
    )
  }
  checkExposure(config, !tokens.isEmpty)
  warnOfOpenDns(config, warn)
  const secretsKey = secretsKeyOf(config, folder, warn)
  if (shared && secretsKey === undefined) {
    logger.warn(
      'secretsKeyFile is not set. With access tokens, a lease granted by one server cannot be renewed through another server or after a restart. Give all servers on this store the same file.',
    )
  }
  const audit = auditOf(config, folder, systemClock, logger)
  const stream = { connections, drain }
  const made = {
    store,
    host,
    port,
    logger,
    tls,
    secretsKey,
    audit,
    stream,
    openWithoutAccessTokens: isOpenToAll(config.values),
    checks: checksOf(config),
    gateways: config.values,
  }
  try {
    const server = await createServer(made)
    for (const warning of warnings) logger.warn(warning)
    return { server, audit }
  } catch (error) {
    audit?.close()
    throw error
  }
}

function checksOf({ values: { checks } }: Config): ServerOptions['checks'] {
  if (checks === 'external') return undefined
  if (checks === 'off') return 'off'
  const setting = (value: string) => `start the server with --checks ${value}`
  return {
    allow: {
      private: checks !== 'public',
      loopback: checks === 'loopback',
      settings: { private: setting('private'), loopback: setting('loopback') },
    },
  }
}

function secretsKeyOf(
  { values, origins }: Config,
  folder: string | undefined,
  warn: (message: string) => void,
): Buffer | undefined {
  const { secretsKeyFile } = values
  if (secretsKeyFile !== undefined) {
    return readSecretsKey(secretsKeyFile, origins.secretsKeyFile, warn)
  }
  return folder === undefined ? undefined : keepSecretsKey(join(folder, SECRETS_KEY))
}

function auditOf(
  { values, origins }: Config,
  folder: string | undefined,
  clock: Clock,
  logger: Logger,
): AuditLog | undefined {
  const file = values.audit ?? (folder === undefined ? NONE : join(folder, 'audit.log'))
  if (file === NONE) return undefined
  return new AuditLog(file, origins.audit, clock, (error) => {
    logger.error({ err: error, file }, 'cannot write the audit log')
  })
}

/** Reads renewed certificates and reopens the audit log, which may have been rotated. */
function reload(
  config: Config,
  server: LeaseServer,
  audit: AuditLog | undefined,
  logger: Logger,
): void {
  try {
    audit?.reopen()
    const tls = readTls(config)
    if (tls !== undefined) server.renewTls(tls)
    logger.info('reloaded the certificates and reopened the audit log')
  } catch (error) {
    logger.error({ err: error }, 'reload failed; keeping the previous certificates and audit log')
  }
}

function explain(error: NodeJS.ErrnoException, { values, origins }: Config): Error {
  const { host, port } = values
  if (error.code === 'EADDRINUSE') {
    return new Error(
      `${host}:${port} is already in use (port from ${origins.port}). Stop the process that listens there, or use another --port`,
    )
  }
  if (error.code === 'EADDRNOTAVAIL' || error.code === 'ENOTFOUND') {
    return new Error(
      `${host} is not an address of this machine (from ${origins.host}). Use another --host`,
    )
  }
  return error
}
