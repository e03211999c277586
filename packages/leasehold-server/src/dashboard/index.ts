import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import type { Clock, LeaseStore, Random } from 'leasehold/port'
import type { Logger } from 'pino'
import type { Access } from '../access/index.ts'
import type { MeasuredStore } from '../operations/index.ts'
import type { StreamStats } from '../stream/surroundings.ts'
import { Demonstration } from './demonstration/index.ts'
import { Feed } from './feed.ts'
import { servePage } from './page.ts'
import { Pulse } from './pulse.ts'
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
  /** Takes a connection over where it is for the feed; answers whether it was. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): boolean
  close(): Promise<void>
}

/**
 * The page at `/`, and what it needs beside the store's own stream, by which it sees every lease as
 * any client does.
 */
export function serveDashboard(app: FastifyInstance, options: DashboardOptions): Dashboard {
  const { store, access, clock, random, log } = options
  const demonstration = new Demonstration({ store, clock, random, log })
  const pulse = new Pulse({ ...options, demonstration: () => demonstration.state })
  const feed = new Feed(access, pulse, clock)
  servePage(app)
  addRoutes(app, access, store, demonstration, clock)
  return {
    upgrade: (request, socket, head) => feed.upgrade(request, socket, head),
    close: async () => {
      feed.close()
      pulse.close()
      await demonstration.stop()
    },
  }
}
