import type { Log } from '../../log/index.ts'
import type { LeaseStore } from '../../port/index.ts'
import { type LogEngine, openLog } from '../engine-log.ts'
import { faultBy } from '../faults.ts'
import { OpenFeeds } from '../feeds/open-feeds.ts'
import { Poller } from '../feeds/poller.ts'
import { type StoreOptions, storeOn } from '../store-on.ts'
import { Blobs } from './blobs.ts'
import { Container, FAULTS } from './client/index.ts'
import { type AzureLogOptions, promisesOf, type Settings, settingsOf } from './options.ts'

/**
 * Opens a log in append blobs of Azure Blob Storage. The address names the container, such as
 * `https://account.blob.core.windows.net/container`, followed by a shared access signature if no
 * `key` is given. As in `--store` of a server, it may begin with `azure+` and have the key as its
 * password.
 */
export async function azureLog(address: string, options: AzureLogOptions = {}): Promise<Log> {
  const settings = settingsOf(options)
  const container = new Container(address, options.key, settings)
  return openLog('Azure', settings, faultBy(FAULTS, 'Azure'), async () => {
    if (container.hasKey) {
      const query = { restype: 'container' }
      await container.ask('', { method: 'PUT', query, accept: [409] })
    }
    return engineOf(container, settings)
  })
}

/** Opens a store on such a log: this process runs a replica of the kernel. */
export function azureStore(
  address: string,
  options: AzureLogOptions & StoreOptions = {},
): Promise<LeaseStore> {
  return storeOn('azure', options, (own) => azureLog(address, own))
}

async function engineOf(container: Container, settings: Settings): Promise<LogEngine> {
  const blobs = new Blobs(container, settings)
  await blobs.open()
  const feeds = new OpenFeeds()
  return {
    promises: promisesOf(settings),
    parts: container.folder(`${settings.prefix}/snapshots/`),
    async append(entry) {
      const { position, start } = await blobs.append(entry)
      feeds.appended(start, position, entry)
      return position
    },
    async follow(feed) {
      const oldest = await blobs.open()
      if (feed.after === 0 && oldest > 1) return feed.end({ cause: 'trimmed' })
      const poller = new Poller(feed, settings, async () => {
        const found = await blobs.read(feed.after)
        if (typeof found !== 'string') {
          // This process may have appended and delivered some of them during the read.
          feed.deliver(found.filter(({ position }) => position > feed.after))
          return found.length > 0
        }
        const tail = await blobs.tail()
        const isTrimmed = found === 'missing' && tail > feed.after
        feed.end(isTrimmed ? { cause: 'trimmed' } : { cause: 'ahead', tail })
        return false
      })
      feeds.add(feed, poller)
    },
    tail: () => blobs.tail(),
    trim: (through) => blobs.trim(through),
  }
}
