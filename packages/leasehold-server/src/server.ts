import type { IncomingMessage } from 'node:http'
import { Server as HttpsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { type FastifyBaseLogger, type FastifyInstance, fastify, LogController } from 'fastify'
import type { CheckerOptions } from 'leasehold'
import {
  type Clock,
  DEFAULT_LIMITS,
  type LeaseStore,
  type Limits,
  type Random,
  systemClock,
  systemRandom,
} from 'leasehold/port'
import { type Logger, pino } from 'pino'
import { Access, type AccessOptions, type Audit, noAudit } from './access/index.ts'
import { type Mcp, serveMcp } from './agents/http/serve-mcp.ts'
import { DEFAULT_HOST, DEFAULT_PORT } from './config/listen-address.ts'
import { serveDashboard } from './dashboard/index.ts'
import {
  type GatewayDependencies,
  type GatewayOptions,
  type Gateways,
  startGateways,
} from './gateways/index.ts'
import {
  DEFAULT_HTTP,
  HttpApi,
  type HttpOptions,
  type HttpStats,
  refuseBadRequest,
  validators,
} from './http/index.ts'
import { boundPipelines } from './http/pipelines.ts'
import { measuredStore, serveOperations } from './operations/index.ts'
import { type HealthCheckLeader, startHealthCheckLeader } from './registry/health-check-leader.ts'
import { checkRefusalOf, refusingForbiddenChecks } from './registry/registration-rules.ts'
import { DEFAULT_STREAM, type StreamOptions } from './stream/options.ts'
import type { StreamStats } from './stream/stream-dependencies.ts'
import { StreamServer } from './stream/stream-server.ts'

/** In a path, each byte of a key may take three characters. */
const MAX_PARAM_LENGTH = 8192
/** The longest time a client may take to send its headers. */
const HEADERS_TIMEOUT_MS = 15_000

export interface ServerOptions {
  /** The store to serve. Closing the server does not close it. */
  readonly store: LeaseStore
  /** The limits that the store was opened with, if they are not the defaults. */
  readonly limits?: Partial<Limits> | undefined
  /** Default: 127.0.0.1. */
  readonly host?: string | undefined
  /** Default: 7420. Use 0 for any free port. */
  readonly port?: number | undefined
  /** Default: no logging. */
  readonly logger?: Logger | undefined
  /** Records forced changes and refused attempts. Default: no audit. */
  readonly audit?: Audit | undefined
  /** The key that signs lease secrets, at least 32 bytes; the same on all servers of one store. */
  readonly secretsKey?: Buffer | undefined
  /** Whether everybody has access while no access token exists. Default: true. */
  readonly openWithoutAccessTokens?: boolean | undefined
  /** @deprecated Use `openWithoutAccessTokens`. */
  readonly openWithoutTokens?: boolean | undefined
  /** Serves over TLS. With `ca`, clients need a certificate signed by it. */
  readonly tls?: ServerTls | undefined
  /**
   * Lets this server run the health checks of registered instances, and refuse instances whose check
   * it may not run. One server per store runs the checks at a time. `'off'`: refuse all instances
   * with a check over the network. Default: this server runs none, and a checker elsewhere may.
   */
  readonly checks?: CheckerOptions | 'off' | undefined
  /** The discovery gateways to run. Default: none. */
  readonly gateways?: GatewayOptions | undefined
  /** The limits of a stream. */
  readonly stream?: Partial<StreamOptions> | undefined
  /** The limits of the HTTP API. */
  readonly http?: Partial<HttpOptions> | undefined
  readonly clock?: Clock | undefined
  readonly random?: Random | undefined
}

/** The server's certificate, its key, and the CA of its clients' certificates, in PEM. */
export interface ServerTls {
  readonly cert: Buffer
  readonly key: Buffer
  readonly ca?: Buffer | undefined
}

export interface LeaseServer {
  /** The address it listens on, such as `http://127.0.0.1:7420`. */
  readonly url: string
  /** Creates and revokes access tokens. */
  readonly access: Access
  /** Whether this server runs the health checks now. */
  readonly checking: boolean
  /** The port of DNS, for UDP and TCP; `undefined` if that gateway is off. */
  readonly dnsPort: number | undefined
  /** The port of the Consul API; `undefined` if that gateway is off. */
  readonly consulPort: number | undefined
  /** The port of xDS; `undefined` if that gateway is off. */
  readonly xdsPort: number | undefined
  readonly stats: Readonly<StreamStats>
  /** Uses new certificates for new connections. Does nothing without TLS. */
  renewTls(tls: ServerTls): void
  readonly httpStats: Readonly<HttpStats>
  /** What agents do at `/mcp`. */
  readonly mcp: Pick<Mcp, 'stats' | 'activeAgents'>
  /**
   * Stops the server: refuses new calls, answers those in progress, tells clients to reconnect, and
   * closes the port. Further calls do nothing.
   */
  close(): Promise<void>
}

/** Serves a store over the network. Resolves when the server listens. */
export async function createServer(options: ServerOptions): Promise<LeaseServer> {
  const { clock = systemClock, random = systemRandom } = options
  const store = measuredStore(options.store, clock)
  const limits = limitsOf(store, options)
  const log = options.logger ?? pino({ level: 'silent' })
  const stream = { ...DEFAULT_STREAM, ...options.stream }
  const app = buildApp(log, clock, options.tls)
  const checks = checksOf(options.checks, app)
  const ruled = await withRegistrationRules(store, checks, clock)
  const access = await Access.open(accessOptionsOf(options, ruled, limits, clock))
  const streams = new StreamServer({ store, access, limits, clock, random, log, options: stream })
  const api = new HttpApi({ access, clock, random, log, options: httpOptionsOf(options) })
  let closing: Promise<void> | undefined
  let background: Background | undefined
  const { stats } = streams
  const shared = { store, unmeasured: options.store, access, stats, clock, log }
  const operations = serveOperations(app, { ...shared, isStopping: () => closing !== undefined })
  api.addTo(app)
  const mcp = serveMcp(app, { access, clock, random, log })
  const dashboard = serveDashboard(app, { ...shared, random })
  serveUpgrades(app, log, (...upgrade) => {
    if (!dashboard.upgrade(...upgrade)) streams.upgrade(...upgrade)
  })
  const close = async () => {
    // First, so that consumers keep what they had: closing streams may end leases.
    await background?.gateways.close()
    await Promise.all([streams.close(), api.close(), dashboard.close(), mcp.close()])
    operations.close()
    await background?.healthChecks?.close()
    await app.close()
    access.close()
  }
  try {
    const { host = DEFAULT_HOST, port = DEFAULT_PORT } = options
    const served = { app, api, access, tls: options.tls }
    const dependencies = { ...served, store, registrations: ruled, clock, random, log }
    background = await startBackground(options, dependencies, checks)
    const { gateways, healthChecks } = background
    const url = await app.listen({ host, port, listenTextResolver: (address) => address })
    return {
      url,
      access,
      get checking() {
        return healthChecks?.checking ?? false
      },
      ...portsOf(gateways),
      stats,
      httpStats: api.stats,
      mcp,
      renewTls: (tls) => renewTls(app, tls),
      close: () => {
        closing ??= close()
        return closing
      },
    }
  } catch (error) {
    await close()
    throw error
  }
}

type Ports = Pick<LeaseServer, 'dnsPort' | 'consulPort' | 'xdsPort'>

function portsOf({ dnsPort, consulPort, xdsPort }: Gateways): Ports {
  return { dnsPort, consulPort, xdsPort }
}

/** What the server does by itself, without a request. */
interface Background {
  readonly healthChecks: HealthCheckLeader | undefined
  readonly gateways: Gateways
}

async function startBackground(
  { store: unmeasured, gateways = {} }: ServerOptions,
  dependencies: GatewayDependencies,
  checks: ServerOptions['checks'],
): Promise<Background> {
  const started = await startGateways(gateways, { ...dependencies, store: unmeasured })
  if (typeof checks !== 'object') return { healthChecks: undefined, gateways: started }
  try {
    const healthChecks = await startHealthCheckLeader({ ...dependencies, checks })
    return { healthChecks, gateways: started }
  } catch (error) {
    await started.close()
    throw error
  }
}

function renewTls({ server }: FastifyInstance, tls: ServerTls): void {
  if (server instanceof HttpsServer) server.setSecureContext(secureOptions(tls))
}

function httpOptionsOf({ http }: ServerOptions): HttpOptions {
  return { ...DEFAULT_HTTP, ...http }
}

function limitsOf({ guarantees: { ttl } }: LeaseStore, { limits }: ServerOptions): Limits {
  return { ...DEFAULT_LIMITS, ttlMin: ttl.min, ttlMax: ttl.max, ...limits }
}

/** The checks with the rule that they never reach this server itself. */
function checksOf(
  checks: ServerOptions['checks'],
  { server }: FastifyInstance,
): ServerOptions['checks'] {
  const ownPort = () => (server.address() as AddressInfo | null)?.port
  return typeof checks === 'object' ? { ...checks, allow: { ...checks.allow, ownPort } } : checks
}

async function withRegistrationRules(
  store: LeaseStore,
  checks: ServerOptions['checks'],
  clock: Clock,
): Promise<LeaseStore> {
  if (checks === undefined) return store
  return refusingForbiddenChecks(store, await checkRefusalOf(store, checks), clock)
}

function accessOptionsOf(
  { audit = noAudit, secretsKey, openWithoutAccessTokens, openWithoutTokens }: ServerOptions,
  store: LeaseStore,
  limits: Limits,
  clock: Clock,
): AccessOptions {
  const isOpen = openWithoutAccessTokens ?? openWithoutTokens
  return { store, limits, audit, clock, secretsKey, openWithoutAccessTokens: isOpen }
}

type Upgrade = [request: IncomingMessage, socket: Duplex, head: Buffer]

/** A failed upgrade closes its own connection and nothing else. */
function serveUpgrades(app: FastifyInstance, log: Logger, serve: (...given: Upgrade) => void) {
  app.server.on('upgrade', (...upgrade: Upgrade) => {
    try {
      serve(...upgrade)
    } catch (error) {
      log.error({ err: error }, 'WebSocket upgrade failed; closing the connection')
      upgrade[1].destroy()
    }
  })
}

function buildApp(log: Logger, clock: Clock, tls: ServerTls | undefined): FastifyInstance {
  const app = fastify({
    ...(tls && { https: secureOptions(tls) }),
    loggerInstance: log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    // A child logger per request costs more than most requests, and no handler uses it.
    childLoggerFactory: (logger) => logger,
    forceCloseConnections: true,
    requestTimeout: 30_000,
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    frameworkErrors: refuseBadRequest,
    schemaController: { compilersFactory: { buildValidator: none, buildSerializer: () => none } },
  })
  app.setValidatorCompiler(validators())
  app.server.headersTimeout = HEADERS_TIMEOUT_MS
  boundPipelines(app.server, clock)
  return app
}

/** Replaces the framework's schema compilers, which are slow to load. */
function none(): never {
  throw new Error('http/validation compiles request schemas; responses have none')
}

function secureOptions({ cert, key, ca }: ServerTls) {
  return { cert, key, ...(ca && { ca, requestCert: true, rejectUnauthorized: true }) }
}
