import type { LogPromises } from '../../log/index.ts'
import type { Duration } from '../../port/index.ts'
import type { Connection, PostgresClient } from '../../stores/postgres/client.ts'
import { settingsOf as storeSettingsOf } from '../../stores/postgres/options.ts'
import { checkLogOptions } from '../options/option-names.ts'
import type { LogOptions, LogSettings } from '../options/options.ts'

export interface PostgresLogOptions extends LogOptions {
  /** The schema, which only this log uses. `leasehold_log` if not given. */
  readonly schema?: string | undefined
  /**
   * How a follower learns of new entries. True (the default): by LISTEN on a connection of the client.
   * Another client: by LISTEN on a connection of that client; use it if the first one goes through a
   * pooler. False: the follower polls.
   */
  readonly listen?: boolean | PostgresClient | undefined
  /** How often a follower polls: 1 s with LISTEN, 50 ms without. */
  readonly poll?: Duration | undefined
}

export interface Settings extends LogSettings {
  readonly connection: Connection
  /** The connection that listens; `undefined` if the log is polled. */
  readonly listener: Connection | undefined
  readonly schema: string
  readonly poll: number
}

export function settingsOf(client: PostgresClient, options: PostgresLogOptions): Settings {
  checkLogOptions('postgres', options)
  const { schema = 'leasehold_log', listen = true } = options
  const poll = options.poll ?? (listen === false ? 50 : 1000)
  const settings = storeSettingsOf(client, { ...options, schema, listen, poll })
  return settings
}

export function promisesOf({ timeout, listener, poll }: Settings): LogPromises {
  return {
    engine: 'postgres',
    durability: 'disk',
    failoverLoses: true,
    entryBytes: 1 << 20,
    timeout,
    notes: [
      'Every entry is committed with synchronous_commit on before it is acknowledged.',
      'A failover to a standby that is not synchronous (synchronous_standby_names) loses entries that had not reached it. Replicas of the kernel notice, and continue with tokens above all that they have seen.',
      'Entries are committed one after the other, and each carries many calls.',
      ...(listener === undefined
        ? [`The log is polled: an entry is seen up to ${poll} ms later.`]
        : []),
    ],
  }
}
