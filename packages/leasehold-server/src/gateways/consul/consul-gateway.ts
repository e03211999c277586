import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, isIP } from 'node:net'
import { HEALTH, Leasehold, SERVICES } from 'leasehold'
import {
  type Clock,
  isLeaseholdError,
  LeaseholdError,
  type LeaseStore,
  type Random,
} from 'leasehold/port'
import type { Logger } from 'pino'
import { agentRoute, type Identity, statusRoute, VERSION } from './agent-routes.ts'
import { type Answer, type Call, ConsulError } from './answer.ts'
import { BlockingQueries } from './blocking-queries.ts'
import { Changes } from './changes.ts'
import { Entries } from './entries.ts'
import { kvRoute } from './kv-routes.ts'
import { Locks } from './locks.ts'
import { ROOT } from './names.ts'
import { unknownPath } from './refusals.ts'
import {
  Catalog,
  CriticalServices,
  catalogRoute,
  DATACENTER,
  healthRoute,
  Services,
} from './services/index.ts'
import { sessionRoute } from './session-routes.ts'
import { Sessions } from './sessions.ts'

export interface ConsulGatewayOptions {
  readonly store: LeaseStore
  /** The store for registrations, which may refuse health checks. Default: the store. */
  readonly registrations?: LeaseStore | undefined
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** A loopback address: the API has no access rights. */
  readonly host: string
  /** 0 for any free port. */
  readonly port: number
}

export interface ConsulGateway {
  readonly port: number
  close(): Promise<void>
}

/** Consul's own limit for a value. The lease store may have a lower one. */
const BODY_MAX = 512 * 1024
const NODE = 'leasehold'

/** Serves a part of Consul's HTTP API. */
export async function startConsulGateway(options: ConsulGatewayOptions): Promise<ConsulGateway> {
  const { store, registrations = store, clock, random, log, host, port } = options
  const holder = `consul-gateway:${process.pid}`
  const leasehold = await Leasehold.open(store, { holder, clock, random, logger: log })
  const { registry } = leasehold
  const entries = new Entries(store)
  const sessions = new Sessions(store, random, NODE)
  const locks = new Locks(store, entries, sessions, log)
  const services = new Services({ store, registrations, registry, log, host })
  const critical = new CriticalServices(services, clock, log)
  const changes = new Changes(store, [ROOT, SERVICES, HEALTH], log, (event) => {
    locks.onEvent(event)
    services.onEvent(event)
    critical.onEvent(event)
  })
  const blocking = new BlockingQueries(changes, clock)
  await leaveRevisionZero(store)
  await changes.open()
  await locks.recover()
  await services.recover()
  await critical.open()
  const stopping = new AbortController()
  const server = createServer()
  const identity = (): Identity => ({ node: NODE, host, port: portOf(server) })
  const node = { name: NODE, address: host, version: VERSION }
  const catalog = new Catalog({ services, changes, blocking, node })
  const route = (call: Call): Promise<Answer> | Answer => {
    const [first, ...rest] = call.path.split('/')
    const datacenter = call.query.get('dc') || DATACENTER
    if (datacenter !== DATACENTER) throw new ConsulError(500, 'No path to datacenter')
    if (first === 'kv') return kvRoute({ entries, locks, blocking }, call, rest.join('/'))
    if (first === 'session') return sessionRoute({ sessions, blocking }, call, rest)
    if (first === 'agent') return agentRoute({ services, catalog }, identity(), call, rest)
    if (first === 'catalog') return catalogRoute(catalog, call, rest)
    if (first === 'health') return healthRoute(catalog, call, rest)
    if (first === 'status') return statusRoute(identity(), rest)
    throw unknownPath(call)
  }
  server.on('request', (request, response) => {
    serve(request, response, route, stopping.signal).catch((error: unknown) => {
      log.error({ err: error }, 'Consul API: a request failed')
      response.destroy()
    })
  })
  await listen(server, host, port)
  return {
    port: portOf(server),
    close: async () => {
      stopping.abort()
      critical.close()
      changes.close()
      server.close()
      server.closeIdleConnections()
      const closed = once(server, 'close')
      server.closeAllConnections()
      await closed
      await leasehold.close()
    },
  }
}

/** An index is never 0. On an empty store, the first index is then before the first change. */
async function leaveRevisionZero(store: LeaseStore): Promise<void> {
  if ((await store.read({ key: ROOT, limit: 1 })).revision > 0) return
  const answer = await store.grant({ holder: 'consul', ttl: Infinity })
  if (answer.outcome === 'granted') await store.revoke({ target: { lease: answer.lease } })
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  route: (call: Call) => Promise<Answer> | Answer,
  stopping: AbortSignal,
): Promise<void> {
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  const answer = await answerTo(request, route, AbortSignal.any([gone.signal, stopping])).catch(
    refusalOf,
  )
  if (gone.signal.aborted) return
  const { status = 200, index, reason, body, type, isRaw } = answer
  const isPlain = typeof body === 'string' || Buffer.isBuffer(body)
  const bytes = isPlain ? body : Buffer.from(JSON.stringify(body))
  response.writeHead(status, {
    ...(bytes.length > 0 && {
      'content-type': type ?? (isPlain ? 'text/plain; charset=utf-8' : 'application/json'),
    }),
    'content-length': Buffer.byteLength(bytes),
    vary: 'Accept-Encoding',
    ...(isRaw && { 'content-security-policy': 'sandbox', 'x-content-type-options': 'nosniff' }),
    'x-consul-default-acl-policy': 'allow',
    ...(reason !== undefined && { 'x-consul-reason': reason }),
    ...(index !== undefined && {
      'x-consul-index': String(index),
      'x-consul-knownleader': 'true',
      'x-consul-lastcontact': '0',
      'x-consul-query-backend': 'blocking-query',
    }),
  })
  response.end(request.method === 'HEAD' ? undefined : bytes)
}

async function answerTo(
  request: IncomingMessage,
  route: (call: Call) => Promise<Answer> | Answer,
  signal: AbortSignal,
): Promise<Answer> {
  refuseBrowsers(request)
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request) {
    size += (chunk as Buffer).length
    if (size > BODY_MAX) throw tooLarge(BODY_MAX)
    chunks.push(chunk as Buffer)
  }
  const url = new URL(request.url ?? '/', 'http://consul')
  if (!url.pathname.startsWith('/v1/')) throw new ConsulError(404, 'Invalid URL path: not found')
  const path = decoded(url.pathname.slice('/v1/'.length))
  const { method = 'GET' } = request
  const body = Buffer.concat(chunks)
  return route({ method, path, query: url.searchParams, body, signal })
}

/**
 * The API has no access rights, so a web page must not reach it through the browser of a user. A page
 * of another origin sends its `Origin`, and one that renames its address to ours a foreign `Host`.
 */
function refuseBrowsers({ headers: { origin, host = '' } }: IncomingMessage): void {
  const name = host.replace(/:\d+$/, '').replace(/^\[|\]$/g, '')
  if (origin === undefined && (name === 'localhost' || isIP(name) !== 0)) return
  throw new ConsulError(403, 'Permission denied: this API is not for web pages')
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    throw new ConsulError(400, 'Invalid URL path: it cannot be decoded')
  }
}

function refusalOf(error: unknown): Answer {
  if (error instanceof ConsulError) return { status: error.status, body: error.message }
  if (isLeaseholdError(error, 'invalid-argument') && /value/.test(error.message)) {
    return { status: 413, body: error.message }
  }
  const isRefused =
    isLeaseholdError(error, 'invalid-argument') || isLeaseholdError(error, 'forbidden')
  const status = isRefused ? 400 : 500
  return { status, body: error instanceof Error ? error.message : String(error) }
}

function tooLarge(most: number): ConsulError {
  return new ConsulError(413, `Request body too large, max size: ${most} bytes.`)
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port
}

async function listen(server: Server, host: string, port: number): Promise<void> {
  const listening = once(server, 'listening')
  server.listen(port, host)
  await listening.catch((error: NodeJS.ErrnoException) => {
    throw new LeaseholdError(
      'invalid-argument',
      `the Consul API cannot listen on ${host}:${port} (${error.code}). Use another address with --consul`,
    )
  })
}
