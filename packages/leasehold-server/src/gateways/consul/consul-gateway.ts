import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { HEALTH, Leasehold, SERVICES } from 'leasehold'
import { type Clock, LeaseholdError, type LeaseStore, type Random } from 'leasehold/port'
import type { Logger } from 'pino'
import { agentRoute, type Identity, statusRoute, VERSION } from './agent-routes.ts'
import { type Answer, type Call, ConsulError } from './answer.ts'
import { BlockingQueries } from './blocking-queries.ts'
import { Changes } from './changes.ts'
import { Entries } from './entries.ts'
import { type KvParts, kvRoute } from './kv-routes.ts'
import { Locks } from './locks.ts'
import { ROOT } from './names.ts'
import { Recovery } from './recovery.ts'
import { unknownPath } from './refusals.ts'
import { serve, Waiting } from './requests.ts'
import {
  type AgentParts,
  Catalog,
  CriticalServices,
  catalogRoute,
  DATACENTER,
  healthRoute,
  Services,
} from './services/index.ts'
import { type SessionParts, sessionRoute } from './session-routes.ts'
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

const NODE = 'leasehold'
/** Longer than clients keep idle connections, so that they do not write to one that is being closed. */
const KEEP_ALIVE_MS = 120_000

/** Serves a part of Consul's HTTP API. */
export async function startConsulGateway(options: ConsulGatewayOptions): Promise<ConsulGateway> {
  const { store, registrations = store, clock, random, log, host, port } = options
  const holder = `consul-gateway:${process.pid}`
  const leasehold = await Leasehold.open(store, { holder, clock, random, logger: log })
  const { registry } = leasehold
  const entries = new Entries(store)
  const sessions = new Sessions(store, random, NODE)
  const onFailure = (error: unknown) => recovery.startLater(error)
  const locks = new Locks({ store, entries, sessions, onFailure })
  const services = new Services({ store, registrations, registry, host, onFailure })
  const critical = new CriticalServices(services, clock, log, onFailure)
  const recover = async () => {
    await locks.recover()
    await services.recover()
    await critical.open()
  }
  const recovery = new Recovery(clock, log, recover)
  const changes = new Changes({
    ...{ store, clock, log, prefixes: [ROOT, SERVICES, HEALTH] },
    onEvent: (event) => {
      locks.onEvent(event)
      services.onEvent(event)
      critical.onEvent(event)
    },
    onMissed: () => recovery.start(),
  })
  const blocking = new BlockingQueries(changes, clock)
  await leaveRevisionZero(store)
  await changes.open()
  await recover()
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS })
  const identity = (): Identity => ({ node: NODE, host, port: portOf(server) })
  const node = { name: NODE, address: host, version: VERSION }
  const catalog = new Catalog({ services, changes, blocking, node })
  const route = (call: Call) =>
    routed({ entries, locks, sessions, blocking, services, catalog }, identity(), call)
  const waiting = new Waiting()
  server.on('request', (request, response) => {
    serve(request, response, route, waiting).catch((error: unknown) => {
      log.error({ err: error }, 'Consul API: a request failed')
      response.destroy()
    })
  })
  await listen(server, host, port)
  return {
    port: portOf(server),
    close: async () => {
      recovery.close()
      critical.close()
      changes.close()
      waiting.end()
      server.close()
      server.closeIdleConnections()
      const closed = once(server, 'close')
      server.closeAllConnections()
      await closed
      await leasehold.close()
    },
  }
}

type Parts = KvParts & SessionParts & AgentParts

function routed(parts: Parts, identity: Identity, call: Call): Promise<Answer> | Answer {
  const [first, ...rest] = call.path.split('/')
  const datacenter = call.query.get('dc') || DATACENTER
  if (datacenter !== DATACENTER) throw new ConsulError(500, 'No path to datacenter')
  if (first === 'kv') return kvRoute(parts, call, rest.join('/'))
  if (first === 'session') return sessionRoute(parts, call, rest)
  if (first === 'agent') return agentRoute(parts, identity, call, rest)
  if (first === 'catalog') return catalogRoute(parts.catalog, call, rest)
  if (first === 'health') return healthRoute(parts.catalog, call, rest)
  if (first === 'status') return statusRoute(identity, call, rest)
  throw unknownPath(call)
}

/** An index is never 0. On an empty store, the first index is then before the first change. */
async function leaveRevisionZero(store: LeaseStore): Promise<void> {
  if ((await store.read({ key: ROOT, limit: 1 })).revision > 0) return
  const answer = await store.grant({ holder: 'consul', ttl: Infinity })
  if (answer.outcome === 'granted') await store.revoke({ target: { lease: answer.lease } })
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
