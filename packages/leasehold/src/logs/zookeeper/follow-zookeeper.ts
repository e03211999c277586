import type { Position } from '../../log/index.ts'
import type { AppendedEntries } from '../appended-entries.ts'
import type { Feed } from '../feeds/feed.ts'
import * as zk from './client/index.ts'
import { pathOf, positionAt } from './segments.ts'

/** How many entries are read at a time. */
const PAGE = 64

export interface FollowedLog {
  readonly client: zk.ZookeeperClient
  readonly path: string
  readonly own: AppendedEntries
  state(): Promise<{ readonly tail: Position; readonly trimmed: Position }>
}

/**
 * Learns of each new entry by a watch on the whole log, and reads the entries by their names, in
 * order. It lists no children.
 */
export async function followZookeeper(log: FollowedLog, feed: Feed): Promise<void> {
  const { client, path, own } = log
  let tail = 0
  let isReading = false
  const entryAt = async (position: Position) => {
    const read = async () => {
      const { data } = await client.call(zk.getData(pathOf(path, position)))
      return new Uint8Array(data)
    }
    return { position, bytes: await own.take(position, read) }
  }
  const read = async () => {
    if (isReading) return
    isReading = true
    while (feed.isOpen && feed.after < tail) {
      const length = Math.min(PAGE, tail - feed.after)
      const next = Array.from({ length }, (_, index) => entryAt(feed.after + index + 1))
      feed.deliver(await Promise.all(next))
    }
    isReading = false
  }
  const failed = (error: unknown) => {
    // Entries have no gaps, so a missing one was trimmed.
    if (zk.isFault(error, zk.CODE.noNode)) feed.end({ cause: 'trimmed' })
    else feed.interrupt(error)
  }
  const listener: zk.Listener = {
    created: (node) => {
      const position = positionAt(path, node) ?? 0
      if (position <= tail) return
      tail = position
      // Wait for the answer to our own append, which may be in the same packet: it saves the read.
      client.defer(() => read().catch(failed))
    },
    ended: failed,
  }
  feed.onClose(() => client.unwatch(listener))
  await client.watch(path, listener)
  const now = await log.state()
  if (!feed.continuesIn(now.trimmed, now.tail)) return
  tail = Math.max(tail, now.tail)
  await read().catch(failed)
}
