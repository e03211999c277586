import type { Key, KeyEntry, LeaseStore } from 'leasehold/port'

const PAGE = 1000

/** All keys with a prefix. Keys of different pages were not true together. */
export async function readAll(store: LeaseStore, prefix: string): Promise<readonly KeyEntry[]> {
  const keys: KeyEntry[] = []
  for (let after: Key | undefined; ; ) {
    const reading = await store.read({ prefix, after, limit: PAGE })
    for (const each of reading.keys) keys.push(each)
    after = reading.keys.at(-1)?.key
    if (!reading.more) return keys
  }
}
