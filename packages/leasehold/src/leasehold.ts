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
 * The main class: a client on a store, and the recipes on that client.
 *
 * A `Leasehold` keeps everything that it holds alive, until it is released or lost, or the
 * `Leasehold` is closed. This does not keep the process running; only a pending wait does.
 */
export class Leasehold implements AsyncDisposable {
  /** Services and their instances: register, find and choose them. */
  readonly registry: Registry
  /** What was learnt about how long each kind of work holds its lease, for `ttl: 'adaptive'`. */
  readonly adaptive: Adaptive
  readonly #client: Client
  readonly #pools: Pools

  private constructor(client: Client) {
    this.#client = client
    // Loaded on the first check, so that other users do not load network code.
    this.registry = new Registry(client, async (settings) => {
      const { networkProbe } = await import('./probes/index.ts')
      return networkProbe(settings)
    })
    this.adaptive = new Adaptive(client)
    this.#pools = new Pools(client, this.adaptive)
  }

  /**
   * Opens a store by its URL, such as `'memory:'` (in this process) or `'file:./data'` (durable, in
   * a folder), or uses a store object. `close` closes a store that was opened here, but not a store
   * object.
   */
  static async open(
    urlOrStore: string | URL | LeaseStore,
    options: LeaseholdOptions = {},
  ): Promise<Leasehold> {
    // Check the options first: otherwise nobody would close the store.
    const settings = settingsOf(options)
    if (typeof urlOrStore === 'string' || urlOrStore instanceof URL) {
      const store = await openStore(String(urlOrStore), settings)
      return new Leasehold(new Client(store, settings, true))
    }
    if (isStore(urlOrStore)) return new Leasehold(new Client(urlOrStore, settings))
    throw invalid(`store is ${show(urlOrStore)}: give 'memory:', 'file:./folder' or a store object`)
  }

  /** The name of this holder, as others see it. */
  get holder(): string {
    return this.#client.holder
  }

  get guarantees(): Guarantees {
    return this.#client.guarantees
  }

  /** Listens to `leased`, `renewed`, `lapsed`, `recovered` or `lost`. Returns how to stop it. */
  on<Name extends keyof ClientEvents>(
    name: Name,
    listener: (event: ClientEvents[Name]) => void,
  ): () => void {
    return this.#client.on(name, listener)
  }

  /** Waits in the queue, first in first out, until the lock is held. Several keys: all or none. */
  lock(keys: Key | readonly Key[], options?: Learning<LockOptions>): Promise<Lock> {
    if (options?.ttl === 'adaptive') return this.#lockAdaptive(keys, options)
    return lock(this.#client, keys, options as LockOptions)
  }

  /** Takes the lock if it is free now; otherwise returns the current holder. */
  tryLock(keys: Key | readonly Key[], options?: Learning<LockOptions>): Promise<LockTry> {
    if (options?.ttl === 'adaptive') return this.#tryLockAdaptive(keys, options)
    return tryLock(this.#client, keys, options as LockOptions)
  }

  /** Takes a lost lock back, if nobody else has held its keys meanwhile. */
  reclaim(lost: Lock, options?: LockOptions): Promise<LockTry> {
    return reclaim(this.#client, lost, options)
  }

  /** Runs `work` while it holds the lock. Fails with `lost` if the lock ended before the work. */
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
   * Resources that tenants share fairly. The first use publishes the definition in the store, so
   * only one process must give it.
   */
  pool(name: string, definition?: PoolDefinition): Pool {
    return this.#pools.get(name, definition)
  }

  /** A cache that all processes share. One of them loads a missing value. */
  cache<Value = unknown>(name: string, options?: CacheOptions): Cache<Value> {
    return new Cache<Value>(this.#client, name, options)
  }

  /** Sessions: data that lives while it is used. The name is `main` if not given. */
  sessions<Data = unknown>(name?: string, options?: SessionsOptions): Sessions<Data> {
    return new Sessions<Data>(this.#client, name, options)
  }

  /** A store for express-session (give it `{ Store: session.Store }`) and for @fastify/session. */
  sessionStore<Base extends object = object>(
    options?: WebStoreOptions<Base>,
  ): WebSessionStore & Base {
    return sessionStore(this.#client, options)
  }

  /** An election: one leader at a time under this name. Campaign, lead, or follow the leader. */
  election(name: string, options?: ElectionOptions): Election {
    return new Election(this.#client, name, options)
  }

  /** Releases everything, ends all waits, and closes the store if it was opened here. */
  close(): Promise<void> {
    // Release at once, unless learnt values must be written first.
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
