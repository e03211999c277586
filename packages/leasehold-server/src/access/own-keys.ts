import type { LeaseStore, Observer, PrefixReading, Query } from 'leasehold/port'
import { OWN_PREFIX } from './rights.ts'

/** The keys that a query sees, as the prefix that the right to it is asked for. */
export function keysOf(query: Exclude<Query, { lease: string }>): string {
  if ('key' in query) return query.key
  if ('prefix' in query) return query.prefix
  return 'history' in query ? query.history : ''
}

/**
 * The keys of a prefix without the server's own, for those who may read all others. The answer is
 * one reading of the store, as always: where a page has nothing but the server's own keys the next
 * one is the answer, so that whoever goes on after the last key that they were shown gets on.
 */
export async function readWithoutOwn(
  store: LeaseStore,
  query: Extract<Query, { readonly prefix: string }>,
): Promise<PrefixReading> {
  let { after } = query
  for (;;) {
    const page: PrefixReading = await store.read({ ...query, after })
    const keys = page.keys.filter(({ key }) => !key.startsWith(OWN_PREFIX))
    if (keys.length > 0 || !page.more) return { ...page, keys }
    after = page.keys.at(-1)!.key
  }
}

/** Passes on what happens; but to the server's own keys only while `mayAll` says so. */
export function withoutOwn(observer: Observer, mayAll: () => boolean): Observer {
  return (notice) => {
    if (notice.type !== 'events' || mayAll()) return observer(notice)
    const events = notice.events.filter(({ key }) => !key.startsWith(OWN_PREFIX))
    if (events.length > 0) observer({ ...notice, events })
  }
}
