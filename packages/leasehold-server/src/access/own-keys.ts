import type { LeaseStore, Notice, PrefixReading, Query } from 'leasehold/port'
import { OWN_PREFIX } from './rights.ts'

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

/** What a notice says of keys that are not the server's own; nothing if that is nothing. */
export function withoutOwn(notice: Notice): Notice | undefined {
  if (notice.type !== 'events') return notice
  const events = notice.events.filter(({ key }) => !key.startsWith(OWN_PREFIX))
  return events.length > 0 ? { ...notice, events } : undefined
}
