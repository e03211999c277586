import type { Log } from '../../log/index.ts'
import type { PostgresClient } from '../../stores/postgres/client.ts'
import { faultOf } from '../../stores/postgres/faults.ts'
import { type LogEngine, openLog } from '../engine-log.ts'
import { OpenFeeds } from '../feeds/open-feeds.ts'
import { pollerOf } from './follower.ts'
import { type PostgresLogOptions, promisesOf, type Settings, settingsOf } from './options.ts'
import { Tables } from './tables.ts'

/**
 * Opens a log in a table of PostgreSQL, for `replicaStore`, with the caller's client: a `Pool` of `pg`,
 * or the `sql` of postgres.js. Creates its schema if it is missing.
 */
export async function postgresLog(
  client: PostgresClient,
  options: PostgresLogOptions = {},
): Promise<Log> {
  const settings = settingsOf(client, options)
  return openLog('PostgreSQL', settings, faultOf, () => engineOf(settings))
}

async function engineOf(settings: Settings): Promise<LogEngine> {
  const tables = new Tables(settings)
  await tables.open()
  // Each epoch has its own feeds, because positions of different epochs are unrelated.
  let log = { epoch: (await tables.read(0)).epoch, feeds: new OpenFeeds() }
  return {
    promises: promisesOf(settings),
    parts: tables.parts,
    async append(entry) {
      const { epoch, feeds } = log
      try {
        const position = await tables.append(entry, epoch)
        // Positions have no gaps.
        feeds.appended(position - 1, position, entry)
        return position
      } catch (error) {
        feeds.wake()
        throw error
      }
    },
    async follow(feed) {
      const before = log
      const { epoch, feeds } = before
      await tables.open()
      const page = await tables.read(feed.after)
      if (page.epoch !== epoch || log !== before) {
        // If another follower has found a new epoch in between, do not restore the old one.
        if (log === before) log = { epoch: page.epoch, feeds: new OpenFeeds() }
        feed.end({ cause: 'ahead', tail: page.last })
      } else if (feed.continuesIn(page.trimmed, page.last)) {
        feeds.add(feed, await pollerOf(feed, tables, epoch, settings))
      }
    },
    tail: async () => (await tables.read(Number.MAX_SAFE_INTEGER)).last,
    trim: (through) => tables.trim(through),
  }
}
