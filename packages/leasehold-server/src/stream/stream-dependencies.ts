import type { Clock, LeaseStore } from 'leasehold/port'
import type { Logger } from 'pino'
import type { Connection } from './connection.ts'
import type { FairScheduler } from './fair-scheduler.ts'
import type { StreamOptions } from './options.ts'
import type { TiedLeases } from './tied-leases.ts'

/** Counts since the start of the server. */
export interface StreamStats {
  /** Open streams, and all streams that were opened. */
  connections: number
  connected: number
  /** Store calls of clients, and notices sent to them. */
  requests: number
  notices: number
  /** Clients that were disconnected as too slow, or because of malformed data. */
  dropped: number
  malformed: number
}

/** The shared dependencies of all connections of a server. */
export interface StreamDependencies {
  readonly clock: Clock
  readonly log: Logger
  readonly options: StreamOptions
  readonly tiedLeases: TiedLeases
  readonly scheduler: FairScheduler
  /** The store without access checks. */
  readonly store: LeaseStore
  readonly stats: StreamStats
  /** The first message to every client. */
  readonly welcome: string
  /** A client has identified itself: an older connection of the same client is closed. */
  greeted(connection: Connection, client: string): void
  /** A connection has closed. Returns whether it was its client's newest. */
  left(connection: Connection): boolean
}
