import type { Position } from '../../log/index.ts'
import type { Feed } from '../feeds/feed.ts'
import { type EtcdClient, get, type KeyValue, putAfter } from './client/index.ts'
import type { Names } from './names.ts'

/** How many entries one read returns. */
const PAGE = 2000

/** Reads the entries in the log, and then watches from the revision of the last read. */
export async function followEtcd(
  client: EtcdClient,
  { last, trimmed, entries }: Names,
  feed: Feed,
  seen: (position: Position) => void,
): Promise<void> {
  const deliver = (puts: readonly KeyValue[]) => {
    const found = puts.map(({ revision, value }) => {
      return { position: revision, bytes: new Uint8Array(value) }
    })
    seen(found.at(-1)?.position ?? 0)
    feed.deliver(found)
  }
  let next = 0
  for (let count = PAGE; count === PAGE && feed.isOpen; ) {
    const page = putAfter(...entries, feed.after, PAGE)
    const { results, revision } = await client.readLong([get(last), get(trimmed), page])
    const [[newest], [trim], found] = results as [KeyValue[], KeyValue[], KeyValue[]]
    if (!feed.continuesIn(Number(trim?.value ?? 0), newest?.revision ?? 0)) return
    deliver(found)
    next = revision + 1
    count = found.length
  }
  if (!feed.isOpen) return
  const ended = (error: unknown) => feed.interrupt(error)
  const watch = await client.watch({ range: entries, from: next, received: deliver, ended })
  feed.onClose(() => watch.close())
}
