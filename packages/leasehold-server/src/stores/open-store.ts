import { readdir } from 'node:fs/promises'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ENGINE_ADDRESSES, isEngine, openEngine } from 'leasehold/engines'
import {
  type Clock,
  invalid,
  LeaseholdError,
  type LeaseStore,
  show,
  systemClock,
  withoutPassword,
} from 'leasehold/port'

/** The clients of engines are dependencies of the server, and are found beside it. */
const CLIENTS: Readonly<Record<string, () => Promise<unknown>>> = {
  ioredis: () => import('ioredis'),
  pg: () => import('pg'),
  '@nats-io/transport-node': () => import('@nats-io/transport-node'),
}
const load = (name: string) => CLIENTS[name]!()

/** The file in the data folder with the key that signs lease secrets. */
export const SECRETS_KEY = 'secrets.key'

/** A store that was opened by its address, with its description. */
export interface OpenedStore {
  readonly store: LeaseStore
  /** The kind of store, and where its data is. */
  readonly name: string
  readonly data: string
  /** The data folder of a file store. */
  readonly folder?: string | undefined
  /** Whether several servers can serve it at the same time. */
  readonly shared: boolean
  /** Closes the store and its client. */
  close(): Promise<void>
}

/**
 * Loads only the kind of store that is asked for: most commands use the server's. `timeout` is how
 * long a call of an engine may take, in milliseconds.
 */
export async function openStore(
  url: string,
  clock: Clock = systemClock,
  timeout?: number,
): Promise<OpenedStore> {
  if (url === 'memory:') {
    const { memoryStore } = await import('leasehold/memory')
    const store = memoryStore({ clock, tokensAbove: epochOf(clock.now()) })
    const data = 'none; it is lost when the server stops'
    return { store, name: 'memory', data, shared: false, close: () => store.close() }
  }
  if (isFolder(url)) {
    const data = folderOf(url)
    const { fileStore, holdsStore } = await import('leasehold/file')
    await refuseLostStore(data, holdsStore)
    const store = await fileStore(data, { clock })
    const close = () => store.close()
    return { store, name: 'file, durable', data, folder: data, shared: false, close }
  }
  if (isEngine(url)) return openShared(url, clock, timeout)
  const forms = ['file:./data', 'memory:', ...ENGINE_ADDRESSES].map((it) => `'${it}'`).join(', ')
  throw invalid(`store is ${show(withoutPassword(url))}: use one of ${forms}`)
}

async function openShared(
  url: string,
  clock: Clock,
  timeout: number | undefined,
): Promise<OpenedStore> {
  const { store, release } = await openEngine(url, { clock, load, timeout })
  const close = async () => {
    await store.close()
    await release()
  }
  const { engine } = store.guarantees
  return { store, name: engine, data: withoutPassword(url), shared: true, close }
}

/**
 * A server creates the secrets key after the store. If only the key exists, the store and its access
 * tokens were lost, and an empty store in its place would give everybody access.
 */
async function refuseLostStore(
  folder: string,
  holdsStore: (folder: string) => Promise<boolean>,
): Promise<void> {
  const names: string[] = await readdir(folder).catch(() => [])
  if (!names.includes(SECRETS_KEY) || (await holdsStore(folder))) return
  throw new LeaseholdError(
    'storage-damaged',
    `${folder} contains ${SECRETS_KEY} but no store. Restore the store from a backup with \`leasehold restore\`; or move the folder away and create an empty store with \`leasehold restore --empty\`, which loses every lease and every access token`,
  )
}

function isFolder(url: string): boolean {
  return url.startsWith('file:') && url.length > 'file:'.length
}

/** The folder of `file:./data` (relative to the working directory) or `file:///data`. */
export function folderOf(url: string): string {
  if (isFolder(url)) return resolve(url.startsWith('file://') ? fileURLToPath(url) : url.slice(5))
  throw invalid(`store is ${show(withoutPassword(url))}, which has no folder: use 'file:./data'`)
}

/** The most changes per millisecond of a memory store, on average over its life. */
const CHANGES_PER_MS = 2048

/**
 * The first fencing token of a memory store. The store loses its tokens when its process ends, but
 * its clients and their fences live on, so a restarted store must not repeat tokens.
 *
 * The first token is the start time in milliseconds times 2048. A store that started at time t and
 * made n changes has 2048·t + n as its last token. The next store starts above it if
 * n < 2048·(now − t), which is fewer than two million changes a second on average. That is several
 * times what a stream can carry and more than the kernel can do. Tokens stay safe integers until the
 * year 2109. Lease ids contain the revision of their grant, so they do not repeat either: the new
 * store does not know a lease of the old one.
 *
 * This depends on the machine's clock. If it is set back between two starts by more than the first
 * store lived, tokens repeat. A memory store therefore promises tokens only within its process.
 */
export function epochOf(now: number): number {
  return Math.floor(now) * CHANGES_PER_MS
}
