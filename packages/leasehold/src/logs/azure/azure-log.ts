import type { Log } from '../../log/index.ts'
import type { LeaseStore } from '../../port/index.ts'
import { type ReplicaStoreOptions, replicaStore } from '../../replica/index.ts'
import { type LogEngine, openLog } from '../engine-log.ts'
import type { Feed } from '../feed.ts'
import { Poller } from '../poller.ts'
import { Blobs } from './blobs.ts'
import { Container } from './client.ts'
import { faultOf } from './faults.ts'
import { type AzureLogOptions, promisesOf, type Settings, settingsOf } from './options.ts'

/**
 * A log in append blobs of Azure Blob Storage. The address names the container, such as
 * `https://account.blob.core.windows.net/container`, with a shared access signature behind it if no
 * `key` is given. As in the address of a server it may begin with `azure+`, and have the key as its
 * password.
 */
export async function azureLog(address: string, options: AzureLogOptions = {}): Promise<Log> {
  const settings = settingsOf(options)
  const container = new Container(address, options.key, settings)
  return openLog('Azure', settings, faultOf, async () => {
    if (container.hasKey) {
      const query = { restype: 'container' }
      await container.ask('', { method: 'PUT', query, accept: [409] })
    }
    return engineOf(container, settings)
  })
}

/** A store on such a log: this process runs a replica of the kernel. */
export async function azureStore(
  address: string,
  options: AzureLogOptions & ReplicaStoreOptions = {},
): Promise<LeaseStore> {
  return replicaStore(await azureLog(address, options), options)
}

async function engineOf(container: Container, settings: Settings): Promise<LogEngine> {
  const blobs = new Blobs(container, settings)
  await blobs.open()
  const followers = new Map<Feed, Poller>()
  return {
    promises: promisesOf(settings),
    parts: container.partsIn(`${settings.prefix}/snapshots/`),
    async append(entry) {
      const { position, start } = await blobs.append(entry)
      const bytes = new Uint8Array(entry)
      for (const [feed, poller] of followers) {
        // A follower that has everything before it need not read this one.
        if (feed.after === start) feed.deliver([{ position, bytes }])
        else poller.wake()
      }
      return position
    },
    async follow(feed) {
      const oldest = await blobs.open()
      if (feed.after === 0 && oldest > 1) return feed.end({ cause: 'trimmed' })
      const poller = new Poller(feed, settings, async () => {
        const found = await blobs.read(feed.after)
        if (typeof found !== 'string') {
          // Meanwhile this process may have appended some, and delivered them by itself.
          feed.deliver(found.filter(({ position }) => position > feed.after))
          return found.length > 0
        }
        const tail = await blobs.tail()
        const isTrimmed = found === 'missing' && tail > feed.after
        feed.end(isTrimmed ? { cause: 'trimmed' } : { cause: 'ahead', tail })
        return false
      })
      followers.set(feed, poller)
      feed.onClose(() => followers.delete(feed))
      poller.wake()
    },
    tail: () => blobs.tail(),
    trim: (through) => blobs.trim(through),
  }
}
