import {
  Client,
  type ClientEvents,
  type ClientOptions,
  openStore,
  settingsOf,
} from './client/index.ts'
import { type Guarantees, invalid, type Key, type LeaseStore, show } from './port/index.ts'
import {
  Adaptive,
  Cache,
  type CacheOptions,
  Election,
  type ElectionOptions,
  type Learning,
  type Lock,
  type LockOptions,
  type LockTry,
  lock,
  type Pool,
  type PoolDefinition,
  Pools,
  Registry,
  reclaim,
  Sessions,
  type SessionsOptions,
  sessionStore,
  tryLock,
  type WebSessionStore,
  type WebStoreOptions,
  withLock,
} from './recipes/index.ts'

export type LeaseholdOptions = ClientOptions

/**
 * The front door: a client on a store, and the recipes on that client.
 *
 * What is held through one `Leasehold` is kept alive by it until it is released, lost, or the
 * `Leasehold` is closed. None of this keeps the process running; only a pending wait does.
 */
export class Leasehold implements AsyncDisposable {
  /** Services and their instances: registering them, finding them, choosing one. */
  readonly registry: Registry
  /** What was learnt of how long each kind of work is held: `ttl: 'adaptive'`, explained. */
  readonly adaptive: Adaptive
  readonly #client: Client
  readonly #pools: Pools

  private constructor(client: Client) {
    this.#client = client
    // Loaded when somebody checks: others do not pay for what goes over the network.
    this.registry = new Registry(client, async (settings) => {
      const { networkProbe } = await import('./probes/index.ts')
      return networkProbe(settings)
    })
    this.adaptive = new Adaptive(client)
    this.#pools = new Pools(client, this.adaptive)
  }

  /**
   * Opens `'memory:'` (a store of its own in this process), `'file:./data'` (a durable store in a
   * folder), or takes a store that was opened before. A store opened here is closed by `close`; one
   * that was handed in is not.
   */
  static async open(
    urlOrStore: string | URL | LeaseStore,
    options: LeaseholdOptions = {},
  ): Promise<Leasehold> {
    // Wrong options are refused before a store is opened that nobody would close.
    const settings = settingsOf(options)
    if (typeof urlOrStore === 'string' || urlOrStore instanceof URL) {
      const store = await openStore(String(urlOrStore), settings)
      return new Leasehold(new Client(store, settings, true))
    }
    if (isStore(urlOrStore)) return new Leasehold(new Client(urlOrStore, settings))
    throw invalid(`store is ${show(urlOrStore)}: give 'memory:', 'file:./folder' or a store object`)
  }

  /** Who this is to others. */
  get holder(): string {
    return this.#client.holder
  }

  /** What the store promises. */
  get guarantees(): Guarantees {
    return this.#client.guarantees
  }

  /** Listens to `leased`, `renewed`, `lapsed`, `recovered`, `lost`; answers with how to end it. */
  on<Name extends keyof ClientEvents>(
    name: Name,
    listener: (news: ClientEvents[Name]) => void,
  ): () => void {
    return this.#client.on(name, listener)
  }

  /** Waits in line, first in first out, until the lock is held. Several keys: all or none. */
  lock(keys: Key | readonly Key[], options?: Learning<LockOptions>): Promise<Lock> {
    if (options?.ttl === 'adaptive') return this.#lockAdaptive(keys, options)
    return lock(this.#client, keys, options as LockOptions)
  }

  /** Takes the lock if it is free now; otherwise tells who has it. */
  tryLock(keys: Key | readonly Key[], options?: Learning<LockOptions>): Promise<LockTry> {
    if (options?.ttl === 'adaptive') return this.#tryLockAdaptive(keys, options)
    return tryLock(this.#client, keys, options as LockOptions)
  }

  /** Takes back a lock that was lost, if nobody else has held its keys meanwhile. */
  reclaim(lost: Lock, options?: LockOptions): Promise<LockTry> {
    return reclaim(this.#client, lost, options)
  }

  /** Does some work under the lock. Work that outlived the lock fails with `lost`. */
  withLock<Result>(
    keys: Key | readonly Key[],
    work: (lock: Lock) => Promise<Result> | Result,
  ): Promise<Result>
  withLock<Result>(
    keys: Key | readonly Key[],
    options: Learning<LockOptions>,
    work: (lock: Lock) => Promise<Result> | Result,
  ): Promise<Result>
  withLock<Result>(
    keys: Key | readonly Key[],
    optionsOrWork: Learning<LockOptions> | ((lock: Lock) => Promise<Result> | Result),
    work?: (lock: Lock) => Promise<Result> | Result,
  ): Promise<Result> {
    if (typeof optionsOrWork === 'function') {
      return withLock(this.#client, keys, undefined, optionsOrWork)
    }
    if (optionsOrWork?.ttl === 'adaptive') {
      return this.#withLockAdaptive(keys, optionsOrWork, work!)
    }
    return withLock(this.#client, keys, optionsOrWork as LockOptions, work!)
  }

  /**
   * Resources shared fairly by tenants. The definition is published in the store with the first use,
   * so that one process gives it and the others need not.
   */
  pool(name: string, definition?: PoolDefinition): Pool {
    return this.#pools.get(name, definition)
  }

  /** A cache that all processes share, in which one of them loads what is missing. */
  cache<Value = unknown>(name: string, options?: CacheOptions): Cache<Value> {
    return new Cache<Value>(this.#client, name, options)
  }

  /** Sessions: data that lives while it is used. `main` where no name is given. */
  sessions<Data = unknown>(name?: string, options?: SessionsOptions): Sessions<Data> {
    return new Sessions<Data>(this.#client, name, options)
  }

  /** A store for express-session (give it `{ Store: session.Store }`) and for @fastify/session. */
  sessionStore<Base extends object = object>(
    options?: WebStoreOptions<Base>,
  ): WebSessionStore & Base {
    return sessionStore(this.#client, options)
  }

  /** Stands for election, leads, or follows who does: one leader at a time under this name. */
  election(name: string, options?: ElectionOptions): Election {
    return new Election(this.#client, name, options)
  }

  /** Gives back all that is held, ends all waits, and closes the store that was opened here. */
  close(): Promise<void> {
    // What is held is given up at once, unless something that was learnt is to be written first.
    if (!this.adaptive.unwritten) return this.#client.close()
    return this.adaptive.flush().then(() => this.#client.close())
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #lockAdaptive(keys: Key | readonly Key[], options: Learning<LockOptions>): Promise<Lock> {
    const timed = await this.adaptive.timed<LockOptions>(options)
    const held = await lock(this.#client, keys, timed.options)
    timed.track(held)
    return held
  }

  async #tryLockAdaptive(
    keys: Key | readonly Key[],
    options: Learning<LockOptions>,
  ): Promise<LockTry> {
    const timed = await this.adaptive.timed<LockOptions>(options)
    const attempt = await tryLock(this.#client, keys, timed.options)
    if (attempt.lock !== undefined) timed.track(attempt.lock)
    return attempt
  }

  async #withLockAdaptive<Result>(
    keys: Key | readonly Key[],
    options: Learning<LockOptions>,
    work: (lock: Lock) => Promise<Result> | Result,
  ): Promise<Result> {
    const timed = await this.adaptive.timed<LockOptions>(options)
    return withLock(this.#client, keys, timed.options, (held) => {
      timed.track(held)
      return work(held)
    })
  }
}

function isStore(value: unknown): value is LeaseStore {
  if (typeof value !== 'object' || value === null) return false
  const store = value as Partial<LeaseStore>
  return typeof store.grant === 'function' && typeof store.guarantees === 'object'
}
