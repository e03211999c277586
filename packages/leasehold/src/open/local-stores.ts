import { fileURLToPath } from 'node:url'
import {
  type Clock,
  delegate,
  LeaseholdError,
  type LeaseStore,
  type Random,
  show,
  withoutPassword,
} from '../port/index.ts'

export interface LocalStoreOptions {
  readonly clock: Clock
  readonly random: Random
  readonly timeout: number
}

/**
 * Opens a store that needs no server of ours. A bundle for browsers has `no-local-stores.ts` in place
 * of this file: see `browser` in package.json.
 */
export async function openLocalStore(
  url: string,
  { clock, random, timeout }: LocalStoreOptions,
): Promise<LeaseStore> {
  if (url.startsWith('memory:')) {
    if (url !== 'memory:') throw invalid(url, "a memory store has no name, write 'memory:'")
    const { memoryStore } = await import('../stores/memory/index.ts')
    return memoryStore({ clock })
  }
  if (url.startsWith('file:')) {
    const { fileStore } = await import('../stores/file/index.ts')
    return fileStore(folderOf(url))
  }
  const { ENGINE_ADDRESSES, isEngine, openEngine } = await import('../engines/index.ts')
  if (isEngine(url)) {
    const { store, release } = await openEngine(url, { clock, random, timeout })
    const close = async () => {
      await store.close()
      await release()
    }
    return delegate(store, { close })
  }
  const known = ['memory:', 'file:./folder', 'http://host:7420', ...ENGINE_ADDRESSES]
  throw invalid(url, `write ${known.map((each) => `'${each}'`).join(', ')}, or give a store object`)
}

/** `file:./data` and `file:data` are relative to the working directory, `file:///data` is absolute. */
function folderOf(url: string): string {
  const folder = url.startsWith('file://') ? fileURLToPath(url) : url.slice('file:'.length)
  if (folder.length > 0) return folder
  throw invalid(url, "name a folder, such as 'file:./data'")
}

function invalid(url: string, fix: string): LeaseholdError {
  const store = show(withoutPassword(url))
  return new LeaseholdError('invalid-argument', `store ${store} cannot be opened: ${fix}`)
}
