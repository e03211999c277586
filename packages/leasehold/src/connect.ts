import { Client, type ClientOptions, settingsOf } from './client/index.ts'
import {
  Cache,
  type CacheOptions,
  Election,
  type ElectionOptions,
  Sessions,
  type SessionsOptions,
} from './recipes/index.ts'
import { remoteStore, type ServerAddress } from './stores/remote/index.ts'

/**
 * The client of a server, and the recipes as functions of it: `leasehold/client`.
 *
 * `Leasehold.open` can open every store and has every recipe, so a bundle with it contains them all. A
 * bundle with these functions contains only the ones that are used.
 */

/** Opens a server by its URL, or one of several servers on one engine. Close the client in the end. */
export async function connect(url: ServerAddress, options: ClientOptions = {}): Promise<Client> {
  const { holder, clock, random, openTimeout: timeout, server } = settingsOf(options)
  const store = await remoteStore(url, { clock, random, timeout, ...server })
  return new Client(store, { ...options, holder }, true)
}

/** As `leasehold.election(name)`. */
export function election(client: Client, name: string, options?: ElectionOptions): Election {
  return new Election(client, name, options)
}

/** As `leasehold.cache(name)`. */
export function cache<Value = unknown>(
  client: Client,
  name: string,
  options?: CacheOptions,
): Cache<Value> {
  return new Cache<Value>(client, name, options)
}

/** As `leasehold.sessions(name)`. */
export function sessions<Data = unknown>(
  client: Client,
  name?: string,
  options?: SessionsOptions,
): Sessions<Data> {
  return new Sessions<Data>(client, name, options)
}

export type { Client, ClientOptions } from './client/index.ts'
export { isLeaseholdError, LeaseholdError } from './port/index.ts'
export {
  type Cache,
  type Election,
  forgetOnce,
  type Lock,
  type LockKeys,
  type LockOptions,
  type LockTry,
  lock,
  type OnceDone,
  type OnceOptions,
  once,
  onceResult,
  reclaim,
  type Sessions,
  tryLock,
  withLock,
} from './recipes/index.ts'
export type { ServerAddress } from './stores/remote/index.ts'
