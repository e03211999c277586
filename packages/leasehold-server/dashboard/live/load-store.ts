import type { Event, LeaseStore, Watch } from 'leasehold/port'
import { isProbe } from '../../src/operations/expiry-probe.ts'
import type { Mirror } from '../model/mirror.ts'

const PAGE = 2000
/** Long queues are read completely, up to this many of them. */
const FULL_QUEUES = 500
/** The number of past revisions whose events are requested, for the feed and the timelines. */
const PAST = 3000

/** Reads all keys of a prefix into the mirror, page by page. Returns the revision to watch from. */
export async function loadKeys(
  store: LeaseStore,
  prefix: string,
  mirror: Mirror,
  progress: () => void,
): Promise<number> {
  let from: number | undefined
  let after: string | undefined
  let whole = 0
  for (let more = true; more; ) {
    const page = await store.read({ prefix, after, limit: PAGE })
    from ??= page.revision
    for (const entry of page.keys) {
      mirror.put(entry, page.revision)
      if (entry.count > entry.claims.length && whole++ < FULL_QUEUES) {
        await loadQueue(store, entry.key, mirror)
      }
    }
    more = page.more
    after = page.keys.at(-1)?.key
    progress()
  }
  return from ?? 0
}

/** Reads one key with its complete queue. */
export async function loadQueue(store: LeaseStore, key: string, mirror: Mirror): Promise<void> {
  const { claims, holders, count, revision } = await store.read({ key, limit: 10_000 })
  mirror.put({ key, claims, holders, count }, revision)
}

/**
 * Reads all leases, including those without claims. A probe of the server is left out: it ends
 * without an event.
 */
export async function loadLeases(
  store: LeaseStore,
  mirror: Mirror,
  progress: () => void,
): Promise<void> {
  let after: string | undefined
  for (let more = true; more; ) {
    const page = await store.read({ leases: true, after, limit: PAGE })
    for (const lease of page.leases) if (!isProbe(lease)) mirror.putLease(lease)
    more = page.more
    after = page.leases.at(-1)?.id
    progress()
  }
}

/** The callbacks of a watch. */
export interface WatchHandlers {
  /** An event after the read. */
  now(event: Event): void
  /** An event before the read, if the store still has it. These come first. */
  before(event: Event): void
  /** All events of one or more revisions were delivered. */
  received(): void
  /** Too many events were missed: everything must be read again. */
  missed(): void
  broken(error: unknown): void
}

/** Watches a prefix that was read at a revision. Delivers the past events first. */
export function watchFrom(
  store: LeaseStore,
  prefix: string,
  read: number,
  handlers: WatchHandlers,
): Watch {
  let watch: Watch
  let isClosed = false
  const begin = (from: number) => {
    watch = store.watch({ prefix, from }, (notice) => {
      if (notice.type === 'events') {
        for (const event of notice.events) {
          if (event.revision > read) handlers.now(event)
          else handlers.before(event)
        }
        handlers.received()
      } else if (notice.type === 'interrupted') handlers.broken(notice.error)
      else if (notice.type === 'compacted' && !isClosed) {
        // Start again from the oldest available event.
        if (from < read) begin(Math.min(Math.max(notice.oldest, from + 1), read))
        else handlers.missed()
      }
    })
  }
  begin(Math.max(0, read - PAST))
  return {
    close: () => {
      isClosed = true
      watch.close()
    },
  }
}
