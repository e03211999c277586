import { LeaseholdError } from '../../port/index.ts'
import type { Feed } from '../feeds/feed.ts'
import { Poller } from '../feeds/poller.ts'
import type { Settings } from './options.ts'
import type { Tables } from './tables.ts'

/** Reads new entries into a feed: after each notification, and at least every `poll`. */
export async function pollerOf(
  feed: Feed,
  tables: Tables,
  epoch: string,
  settings: Settings,
): Promise<Poller> {
  const { listener, timeout } = settings
  const poller = new Poller(feed, settings, async () => {
    const { after } = feed
    const page = await tables.read(after)
    if (page.epoch !== epoch || page.last < after) feed.end({ cause: 'ahead', tail: page.last })
    else if (page.trimmed > after) feed.end({ cause: 'trimmed' })
    // This process may have appended and delivered some of them during the read.
    else feed.deliver(page.entries.filter(({ position }) => position > feed.after))
    return page.last > feed.after
  })
  if (listener) {
    const changed = (isUp: boolean) => (isUp ? poller.wake() : feed.end(lost()))
    const notified = (payload: string) => {
      const [position, by] = payload.split(' ')
      // The answer to this process's own append delivers its entry, or wakes the poller.
      if (by !== tables.sender) poller.wake(Number(position) || Infinity)
    }
    feed.onClose(await listener.listen(tables.channel, notified, changed, timeout))
  }
  return poller
}

function lost() {
  const message = 'the listening connection was lost: follow again'
  return { cause: 'interrupted', error: new LeaseholdError('unknown-outcome', message) } as const
}
