import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { FastifyInstance } from 'fastify'
import { type Clock, isLeaseholdError, LeaseholdError, type LeaseStore } from 'leasehold/port'
import type { Logger } from 'pino'
import { type Access, credentialsOf } from '../access/index.ts'
import type { StreamStats } from '../stream/stream-dependencies.ts'
import type { MeasuredStore } from './measured-store.ts'
import { LOOP_RESOLUTION_MS, metricsOf } from './metrics.ts'
import { storageErrorOf } from './readiness.ts'
import { StoreObserver } from './store-observer.ts'

export interface OperationsOptions {
  readonly store: MeasuredStore
  /** The same store without counting, for the server's own reads and probes. */
  readonly unmeasured: LeaseStore
  readonly access: Access
  readonly stats: Readonly<StreamStats>
  readonly clock: Clock
  readonly log: Logger
  readonly isStopping: () => boolean
}

/** Serves liveness, readiness and metrics. */
export function serveOperations(
  app: FastifyInstance,
  options: OperationsOptions,
): { close(): void } {
  const { store, unmeasured, access, stats, clock, log, isStopping } = options
  const observer = new StoreObserver(unmeasured, clock, log)
  const loop = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS })
  loop.enable()
  app.get('/healthz', async () => ({ status: 'alive' }))
  app.get('/readyz', async (request, reply) => {
    if (isStopping()) return reply.code(503).send({ status: 'stopping' })
    const reason = await storageErrorOf(store, clock)
    if (reason === undefined) return { status: 'ready' }
    // Anybody may ask, and the message may name a folder or a host: show it only to readers.
    const detail = isReader(access, request.raw) ? { reason } : {}
    return reply.code(503).send({ status: 'cannot write', ...detail })
  })
  app.get('/metrics', async (request, reply) => {
    try {
      demandReader(access, request.raw)
    } catch (error) {
      if (!isLeaseholdError(error)) throw error
      const isKnown = error.code === 'forbidden'
      if (!isKnown) reply.header('www-authenticate', 'Bearer')
      return reply
        .code(isKnown ? 403 : 401)
        .type('text/plain')
        .send(`${error.message}\n`)
    }
    observer.start()
    void observer.probeExpiry()
    const isReady = () => !isStopping() && store.storageError === undefined
    const text = await metricsOf({ store, observer, access, stats, loop, isReady })
    return reply.type('text/plain; version=0.0.4; charset=utf-8').send(text)
  })
  return {
    close: () => {
      observer.close()
      loop.disable()
    },
  }
}

function isReader(access: Access, request: Parameters<typeof credentialsOf>[0]): boolean {
  try {
    demandReader(access, request)
    return true
  } catch {
    return false
  }
}

/** The metrics name all principals, so they need the right to read all keys. */
function demandReader(access: Access, request: Parameters<typeof credentialsOf>[0]): void {
  const { name, rights } = access.identify(credentialsOf(request))
  if (rights.some(({ prefix, verbs }) => prefix === '' && verbs.includes('read'))) return
  throw new LeaseholdError(
    'forbidden',
    `"${name}" has no right to read all keys: use an access token with 'read:'`,
  )
}
