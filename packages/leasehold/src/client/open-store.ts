import { fileURLToPath } from 'node:url'
import { LeaseholdError, type LeaseStore, show, withoutPassword } from '../port/index.ts'
import type { Settings } from './settings.ts'

/** Stores that need a client object of the caller, so a URL alone cannot open them. */
const ENGINES = ['redis', 'postgres', 'nats']

/**
 * Opens the store that a URL names: `memory:` a new one in this process, `file:./data` one in a
 * folder, `http://host:7420` one on a server, `etcd://host:2379/prefix` and
 * `zookeeper://host:2181/root` one on an engine, `azure+https://account:key@host/container` one on
 * Azure. The code of a store is loaded on first use.
 */
export async function openStore(
  url: string,
  {
    clock,
    random,
    callTimeout,
    accessToken,
  }: Pick<Settings, 'clock' | 'random' | 'callTimeout' | 'accessToken'>,
): Promise<LeaseStore> {
  const scheme = /^([a-z][a-z0-9+.-]*):/.exec(url)?.[1]
  if (scheme === 'memory') {
    if (url !== 'memory:') throw invalid(url, "a memory store has no name, write 'memory:'")
    const { memoryStore } = await import('../stores/memory/index.ts')
    return memoryStore({ clock })
  }
  if (scheme === 'file') {
    const { fileStore } = await import('../stores/file/index.ts')
    return fileStore(folderOf(url))
  }
  if (/^(https?|wss?)$/.test(scheme ?? '')) {
    const { remoteStore } = await import('../stores/remote/index.ts')
    return remoteStore(url, { clock, random, timeout: callTimeout, accessToken })
  }
  if (scheme === 'etcd' || scheme === 'etcds') {
    const { etcdAddress, etcdStore } = await import('../logs/etcd/index.ts')
    return etcdStore({ ...etcdAddress(url), clock, random, timeout: callTimeout })
  }
  if (scheme === 'zookeeper') {
    const { zookeeperAddress, zookeeperStore } = await import('../logs/zookeeper/index.ts')
    return zookeeperStore({ ...zookeeperAddress(url), clock, random, timeout: callTimeout })
  }
  if (scheme === 'azure+https' || scheme === 'azure+http') {
    const { azureStore } = await import('../logs/azure/index.ts')
    return azureStore(url, { clock, random, timeout: callTimeout })
  }
  const engine = ENGINES.find((name) => scheme?.startsWith(name))
  if (engine !== undefined) {
    throw invalid(
      url,
      `give a store object: ${engine}Store(…) of 'leasehold/${engine}', with your own client`,
    )
  }
  throw invalid(url, "write 'memory:', 'file:./folder', 'http://host:7420', or give a store object")
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
