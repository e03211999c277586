import { readdir } from 'node:fs/promises'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fileStore, holdsStore } from 'leasehold/file'
import { memoryStore } from 'leasehold/memory'
import {
  type Clock,
  invalid,
  LeaseholdError,
  type LeaseStore,
  show,
  systemClock,
  withoutPassword,
} from 'leasehold/port'
import { ENGINE_ADDRESSES, isEngine, openEngine } from './engines.ts'

/** The file, in the folder of the data, that the key of lease secrets is in. */
export const SECRETS_KEY = 'secrets.key'

/** A store that was opened by its address, and what to say of it. */
export interface OpenedStore {
  readonly store: LeaseStore
  /** In one word or two, and where its data is. */
  readonly name: string
  readonly data: string
  /** The folder of its data, where it has one. */
  readonly folder?: string | undefined
  /** Other servers may serve it at the same time. */
  readonly shared: boolean
  /** Closes the store, and what was opened for it. */
  close(): Promise<void>
}

export async function openStore(url: string, clock: Clock = systemClock): Promise<OpenedStore> {
  if (url === 'memory:') {
    const store = memoryStore({ clock, tokensAbove: epochOf(clock.now()) })
    const data = 'nowhere, it is lost when the server stops'
    return { store, name: 'memory', data, shared: false, close: () => store.close() }
  }
  if (isFolder(url)) {
    const data = folderOf(url)
    await refuseLostStore(data)
    const store = await fileStore(data, { clock })
    const close = () => store.close()
    return { store, name: 'file, durable', data, folder: data, shared: false, close }
  }
  if (isEngine(url)) return openShared(url, clock)
  const ways = ['file:./data', 'memory:', ...ENGINE_ADDRESSES].map((way) => `'${way}'`).join(', ')
  throw invalid(`store ${show(withoutPassword(url))} cannot be opened: write one of ${ways}`)
}

async function openShared(url: string, clock: Clock): Promise<OpenedStore> {
  const { store, release } = await openEngine(url, clock)
  const close = async () => {
    await store.close()
    await release()
  }
  const { engine } = store.guarantees
  return { store, name: engine, data: withoutPassword(url), shared: true, close }
}

/**
 * A server makes the key of lease secrets after the store. So where only the key is left, the store
 * was lost, and with it the access tokens: an empty store in its place would let anybody in.
 */
async function refuseLostStore(folder: string): Promise<void> {
  const names: string[] = await readdir(folder).catch(() => [])
  if (!names.includes(SECRETS_KEY) || (await holdsStore(folder))) return
  throw new LeaseholdError(
    'storage-damaged',
    `${folder} has the ${SECRETS_KEY} of a store, but the store is gone. Restore it from a backup with \`leasehold restore\`, or move the folder away and make an empty store with \`leasehold restore --empty\`: then every lease and every access token is lost`,
  )
}

function isFolder(url: string): boolean {
  return url.startsWith('file:') && url.length > 'file:'.length
}

/** The folder that `file:./data`, relative to the working directory, or `file:///data` names. */
export function folderOf(url: string): string {
  if (isFolder(url)) return resolve(url.startsWith('file://') ? fileURLToPath(url) : url.slice(5))
  throw invalid(`store ${show(withoutPassword(url))} is in no folder: write 'file:./data'`)
}

/** How many changes a memory store may make in a millisecond, on average over its life. */
const CHANGES_PER_MS = 2048

/**
 * Where the tokens of a memory store begin, that forgets them with its process while its clients and
 * their fences live on.
 *
 * The time of the start in milliseconds, times 2048. The store that was there before had started at
 * an earlier time t, and has made n changes since: its last token is 2048·t + n. The next one's first
 * is higher as long as n < 2048·(now − t), that is, as long as it has made fewer than two million
 * changes a second on the average of its whole life. That is several times what a stream
 * can carry and more than the kernel can do, so the tokens cannot meet; and they stay safe integers
 * until the year 2109. Lease ids hold the revision of their grant, so they do not meet either: a
 * lease of the old store is unknown to the new one, never another's.
 *
 * It rests on the machine's clock. Where that is set back, between two starts, by more than the
 * first store had lived, tokens repeat: hence a memory store promises tokens only for its process.
 */
export function epochOf(now: number): number {
  return Math.floor(now) * CHANGES_PER_MS
}
