import type { LeaseStore, Notice, PrefixReading, Query } from 'leasehold/port'
import { SERVER_PREFIX } from '../rights.ts'

/**
 * Reads the keys of a prefix without the server's own. The answer is one page of the store. If a page
 * has only the server's keys, the next page is returned, so that a caller who continues after the
 * last key makes progress.
 */
export async function readWithoutServerKeys(
  store: LeaseStore,
  query: Extract<Query, { readonly prefix: string }>,
): Promise<PrefixReading> {
  let { after } = query
  for (;;) {
    const page: PrefixReading = await store.read({ ...query, after })
    const keys = page.keys.filter(({ key }) => !key.startsWith(SERVER_PREFIX))
    if (keys.length > 0 || !page.more) return { ...page, keys }
    after = page.keys.at(-1)!.key
  }
}

/** Removes the server's own keys from a notice; `undefined` if nothing is left. */
export function withoutServerKeys(notice: Notice): Notice | undefined {
  if (notice.type !== 'events') return notice
  const events = notice.events.filter(({ key }) => !key.startsWith(SERVER_PREFIX))
  return events.length > 0 ? { ...notice, events } : undefined
}
