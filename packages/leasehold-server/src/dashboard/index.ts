import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import type { Clock, LeaseStore, Random } from 'leasehold/port'
import type { Logger } from 'pino'
import type { Access } from '../access/index.ts'
import type { MeasuredStore } from '../operations/index.ts'
import type { StreamStats } from '../stream/stream-dependencies.ts'
import { DemoControl } from './demo.ts'
import { openCodingAgents } from './demo-agents.ts'
import { Feed } from './feed.ts'
import { LiveMetrics } from './live-metrics.ts'
import { servePage } from './page.ts'
import { addRoutes } from './routes.ts'

export interface DashboardOptions {
  readonly store: MeasuredStore
  readonly unmeasured: LeaseStore
  readonly access: Access
  readonly stats: Readonly<StreamStats>
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

export interface Dashboard {
  /** Handles an upgrade of the feed. Returns false for any other path. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): boolean
  close(): Promise<void>
}

/**
 * Serves the page at `/`, its actions and its feed. The page reads leases through the store's stream,
 * as any client does.
 */
export function serveDashboard(app: FastifyInstance, options: DashboardOptions): Dashboard {
  const { store, access, clock, random, log } = options
  const demo = new DemoControl({
    ...{ store, clock, random, log },
    openCodingAgent: openCodingAgents(clock, random),
  })
  const liveMetrics = new LiveMetrics({ ...options, demo: () => demo.state })
  const feed = new Feed(access, liveMetrics, clock)
  liveMetrics.start()
  servePage(app)
  addRoutes(app, access, store, demo, clock, random)
  return {
    upgrade: (request, socket, head) => feed.upgrade(request, socket, head),
    close: async () => {
      feed.close()
      liveMetrics.close()
      await demo.stop()
    },
  }
}
