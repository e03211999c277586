import type { Clock, LeaseStore } from 'leasehold/port'
import type { Logger } from 'pino'
import type { Connection } from './connection.ts'
import type { StreamOptions } from './options.ts'
import type { Ties } from './ties.ts'
import type { Turns } from './turns.ts'

/** What has been counted since the server was started. */
export interface StreamStats {
  /** Streams that are open, and those that ever were. */
  connections: number
  connected: number
  /** Calls of the store that clients asked for, and notices that they were sent. */
  requests: number
  notices: number
  /** Clients that were disconnected because they did not read, or did not speak the protocol. */
  dropped: number
  malformed: number
}

/** What the connections of one server have in common. */
export interface Surroundings {
  readonly clock: Clock
  readonly log: Logger
  readonly options: StreamOptions
  readonly ties: Ties
  readonly turns: Turns
  /** The store itself, without anybody's rights. */
  readonly store: LeaseStore
  readonly stats: StreamStats
  /** The message that a client is welcomed with. */
  readonly welcome: string
  /** A connection says which client it is: an older one of the same client is closed. */
  greeted(connection: Connection, client: string): void
  /** A connection is closed. Whether it was its client's newest. */
  left(connection: Connection): boolean
}
