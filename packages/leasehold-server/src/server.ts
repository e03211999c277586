import type { IncomingMessage } from 'node:http'
import { Server as HttpsServer } from 'node:https'
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
import { serveDashboard } from './dashboard/index.ts'
import { type HealthCheckLeader, startHealthCheckLeader } from './health-check-leader.ts'
import {
  DEFAULT_HTTP,
  HttpApi,
  type HttpOptions,
  type HttpStats,
  refuseBadRequest,
  validators,
} from './http/index.ts'
import { measuredStore, serveOperations } from './operations/index.ts'
import { boundPipelines } from './pipelines.ts'
import { DEFAULT_STREAM, type StreamOptions } from './stream/options.ts'
import type { StreamStats } from './stream/stream-dependencies.ts'
import { StreamServer } from './stream/stream-server.ts'

export const DEFAULT_HOST = '127.0.0.1'
export const DEFAULT_PORT = 7420
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
   * Lets this server run the health checks of registered instances. One server per store runs them
   * at a time. Default: this server runs none.
   */
  readonly checks?: CheckerOptions | undefined
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
  readonly stats: Readonly<StreamStats>
  /** Uses new certificates for new connections. Does nothing without TLS. */
  renewTls(tls: ServerTls): void
  readonly httpStats: Readonly<HttpStats>
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
  const { ttl } = store.guarantees
  const limits = { ...DEFAULT_LIMITS, ttlMin: ttl.min, ttlMax: ttl.max, ...options.limits }
  const log = options.logger ?? pino({ level: 'silent' })
  const stream = { ...DEFAULT_STREAM, ...options.stream }
  const access = await Access.open(accessOptionsOf(options, store, limits, clock))
  const streams = new StreamServer({ store, access, limits, clock, random, log, options: stream })
  const http = { ...DEFAULT_HTTP, ...options.http }
  const api = new HttpApi({ access, clock, random, log, options: http })
  let closing: Promise<void> | undefined
  let healthChecks: HealthCheckLeader | undefined
  const app = buildApp(log, clock, options.tls)
  const { stats } = streams
  const operations = serveOperations(app, {
    ...{ store, access, stats, clock, log },
    unmeasured: options.store,
    isStopping: () => closing !== undefined,
  })
  api.addTo(app)
  const unmeasured = options.store
  const dashboard = serveDashboard(app, { store, unmeasured, access, stats, clock, random, log })
  serveUpgrades(app, log, (...upgrade) => {
    if (!dashboard.upgrade(...upgrade)) streams.upgrade(...upgrade)
  })
  const close = async () => {
    await Promise.all([streams.close(), api.close(), dashboard.close()])
    operations.close()
    await healthChecks?.close()
    await app.close()
    access.close()
  }
  try {
    const { host = DEFAULT_HOST, port = DEFAULT_PORT, checks } = options
    if (checks) healthChecks = await startHealthCheckLeader({ store, clock, random, log, checks })
    const url = await app.listen({ host, port, listenTextResolver: (address) => address })
    return {
      url,
      access,
      get checking() {
        return healthChecks?.checking ?? false
      },
      stats,
      httpStats: api.stats,
      renewTls: (tls) => {
        if (app.server instanceof HttpsServer) app.server.setSecureContext(secureOptions(tls))
      },
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
