import type { Settings } from '../client/index.ts'
import { LeaseholdError, type LeaseStore } from '../port/index.ts'

/**
 * Opens the store that a URL names: `memory:` a new one in this process, `file:./data` one in a
 * folder, `http://host:7420` one on a server, and the address of an engine, such as
 * `redis://host:6379`, one on that engine. The code of a store is loaded on first use.
 */
export async function openStore(
  url: string,
  {
    clock,
    random,
    openTimeout: timeout,
    server,
  }: Pick<Settings, 'clock' | 'random' | 'openTimeout' | 'server'>,
): Promise<LeaseStore> {
  const scheme = /^([a-z][a-z0-9+.-]*):/.exec(url)?.[1]
  const isServer = /^(https?|wss?)$/.test(scheme ?? '')
  if (!isServer) refuseServerOptions(server)
  if (isServer) {
    const { remoteStore } = await import('../stores/remote/index.ts')
    return remoteStore(url, { clock, random, timeout, ...server })
  }
  const { openLocalStore } = await import('./local-stores.ts')
  return openLocalStore(url, { clock, random, timeout })
}

/** Options that have no effect are a mistake. */
export function refuseServerOptions({ tied, headers, tls }: Settings['server']): void {
  for (const [name, value] of Object.entries({ tied, headers, tls })) {
    if (value === undefined || value === false) continue
    throw new LeaseholdError(
      'invalid-argument',
      `${name} is only for the URL of a server, such as 'http://host:7420': leave it out, or give it to remoteStore()`,
    )
  }
}
