import type { Event, LeaseStore, Watch } from 'leasehold/port'
import type { Mirror } from '../model/mirror.ts'

const PAGE = 2000
/** A line that is longer than a page shows is read whole, up to so many of them. */
const WHOLE_LINES = 500
/** So far back the events are asked for, for the feed and the plots of what was. */
const PAST = 3000

/** Reads all keys of a prefix into the mirror, page by page. Answers with where to watch from. */
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
      if (entry.count > entry.claims.length && whole++ < WHOLE_LINES) {
        await loadLine(store, entry.key, mirror)
      }
    }
    more = page.more
    after = page.keys.at(-1)?.key
    progress()
  }
  return from ?? 0
}

/** Reads one key with all who wait for it. */
export async function loadLine(store: LeaseStore, key: string, mirror: Mirror): Promise<void> {
  const { claims, holders, count, revision } = await store.read({ key, limit: 10_000 })
  mirror.put({ key, claims, holders, count }, revision)
}

/** Reads all leases, also those that hold nothing. */
export async function loadLeases(
  store: LeaseStore,
  mirror: Mirror,
  progress: () => void,
): Promise<void> {
  let after: string | undefined
  for (let more = true; more; ) {
    const page = await store.read({ leases: true, after, limit: PAGE })
    for (const lease of page.leases) mirror.putLease(lease)
    more = page.more
    after = page.leases.at(-1)?.id
    progress()
  }
}

/** What a page is told by the store's stream. */
export interface Hearing {
  /** Something happened after everything was read. */
  now(event: Event): void
  /** Something happened before, as far as the store has kept it. It comes first. */
  before(event: Event): void
  /** All of one revision or several was told. */
  told(): void
  /** Too much was missed: everything is to be read again. */
  missed(): void
  broken(error: unknown): void
}

/** Watches a prefix that was read at a revision; and first tells what came before that. */
export function watchFrom(
  store: LeaseStore,
  prefix: string,
  read: number,
  hearing: Hearing,
): Watch {
  let watch: Watch
  let isClosed = false
  const begin = (from: number) => {
    watch = store.watch({ prefix, from }, (notice) => {
      if (notice.type === 'events') {
        for (const event of notice.events) {
          if (event.revision > read) hearing.now(event)
          else hearing.before(event)
        }
        hearing.told()
      } else if (notice.type === 'interrupted') hearing.broken(notice.error)
      else if (notice.type === 'compacted' && !isClosed) {
        // Of the past as much is told as there is.
        if (from < read) begin(Math.min(Math.max(notice.oldest, from + 1), read))
        else hearing.missed()
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
