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
import { Access, type Audit, noAudit } from './access/index.ts'
import { serveDashboard } from './dashboard/index.ts'
import { beginDuties, type Duties } from './duties.ts'
import {
  DEFAULT_HTTP,
  HttpApi,
  type HttpOptions,
  type HttpStats,
  refuseBadRequest,
  validators,
} from './http/index.ts'
import { MeasuredStore, serveOperations } from './operations/index.ts'
import { boundPipelines } from './pipelines.ts'
import { DEFAULT_STREAM, type StreamOptions } from './stream/options.ts'
import { StreamServer } from './stream/stream-server.ts'
import type { StreamStats } from './stream/surroundings.ts'

export const DEFAULT_HOST = '127.0.0.1'
export const DEFAULT_PORT = 7420
/** A key in the path of a request may be written with three characters for each byte. */
const MAX_PARAM_LENGTH = 8192
/** So long may a client take to send its headers. */
const HEADERS_TIMEOUT_MS = 15_000

export interface ServerOptions {
  /** What is served. It is not closed with the server. */
  readonly store: LeaseStore
  /** The limits that the store was opened with, where they are not the default ones. */
  readonly limits?: Partial<Limits> | undefined
  /** 127.0.0.1 if not given. */
  readonly host?: string | undefined
  /** 7420 if not given, and 0 for any that is free. */
  readonly port?: number | undefined
  /** Says nothing if not given. */
  readonly logger?: Logger | undefined
  /** Where it is written down what somebody did by force, or tried to. Nowhere if not given. */
  readonly audit?: Audit | undefined
  /** The key of lease secrets, at least 32 bytes: the same for all servers on one store. */
  readonly secretsKey?: Buffer | undefined
  /** Whether everybody is let in while there is no token. Yes, if not given. */
  readonly openWithoutTokens?: boolean | undefined
  /** TLS, if given; with `ca`, only clients with a certificate that it signed are let in. */
  readonly tls?: ServerTls | undefined
  /**
   * Runs the health checks that instances ask for, when it is this server's turn among all on its
   * store. None are run if not given.
   */
  readonly checks?: CheckerOptions | undefined
  /** The limits of a stream. */
  readonly stream?: Partial<StreamOptions> | undefined
  /** The limits of the HTTP API. */
  readonly http?: Partial<HttpOptions> | undefined
  readonly clock?: Clock | undefined
  readonly random?: Random | undefined
}

/** The server's certificate and its key, and the authorities of its clients' certificates, in PEM. */
export interface ServerTls {
  readonly cert: Buffer
  readonly key: Buffer
  readonly ca?: Buffer | undefined
}

export interface LeaseServer {
  /** Where it listens, as `http://127.0.0.1:7420`. */
  readonly url: string
  /** Who may do what: tokens are made and ended here. */
  readonly access: Access
  /** Whether this is the server that runs the health checks now. */
  readonly checking: boolean
  readonly stats: Readonly<StreamStats>
  /** New certificates, for the connections that come from now on. Only where it has TLS already. */
  renewTls(tls: ServerTls): void
  readonly httpStats: Readonly<HttpStats>
  /**
   * Stops: carries out nothing more, answers what is under way, tells the clients to connect again,
   * and lets go of the port. Stopping twice does nothing more.
   */
  close(): Promise<void>
}

/** Serves a store over the network. Fulfilled when it listens. */
export async function createServer(options: ServerOptions): Promise<LeaseServer> {
  const { clock = systemClock, random = systemRandom } = options
  const store = new MeasuredStore(options.store, clock)
  const { ttl } = store.guarantees
  const limits = { ...DEFAULT_LIMITS, ttlMin: ttl.min, ttlMax: ttl.max, ...options.limits }
  const log = options.logger ?? pino({ level: 'silent' })
  const stream = { ...DEFAULT_STREAM, ...options.stream }
  const { audit = noAudit, secretsKey, openWithoutTokens } = options
  const access = await Access.open({ store, limits, audit, clock, secretsKey, openWithoutTokens })
  const streams = new StreamServer({ store, access, limits, clock, random, log, options: stream })
  const http = { ...DEFAULT_HTTP, ...options.http }
  const api = new HttpApi({ access, clock, random, log, options: http })
  let closing: Promise<void> | undefined
  let duties: Duties | undefined
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
    await duties?.close()
    await app.close()
    access.close()
  }
  try {
    const { host = DEFAULT_HOST, port = DEFAULT_PORT, checks } = options
    if (checks) duties = await beginDuties({ store, clock, random, log, checks })
    const url = await app.listen({ host, port, listenTextResolver: (address) => address })
    return {
      url,
      access,
      get checking() {
        return duties?.checking ?? false
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

type Upgrade = [request: IncomingMessage, socket: Duplex, head: Buffer]

/** Whatever goes wrong with an upgrade ends its connection, and nothing else. */
function serveUpgrades(app: FastifyInstance, log: Logger, serve: (...given: Upgrade) => void) {
  app.server.on('upgrade', (...upgrade: Upgrade) => {
    try {
      serve(...upgrade)
    } catch (error) {
      log.error({ err: error }, 'the server failed on an upgrade, and closes its connection')
      upgrade[1].destroy()
    }
  })
}

function buildApp(log: Logger, clock: Clock, tls: ServerTls | undefined): FastifyInstance {
  const app = fastify({
    ...(tls && { https: secureOptions(tls) }),
    loggerInstance: log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    // One for each request would cost more than most requests do, and nobody writes to them.
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

/** Instead of the framework's own compilers of schemas, which take long to load. */
function none(): never {
  throw new Error('schemas are compiled by http/validation, and answers have none')
}

function secureOptions({ cert, key, ca }: ServerTls) {
  return { cert, key, ...(ca && { ca, requestCert: true, rejectUnauthorized: true }) }
}
