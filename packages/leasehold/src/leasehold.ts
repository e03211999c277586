import {
  type CallOptions,
  Client,
  type ClientEvents,
  type ClientOptions,
  settingsOf,
  timeoutIn,
} from './client/index.ts'
import { openStore, refuseServerOptions } from './open/index.ts'
import { type Guarantees, invalid, type LeaseStore, show, type Token } from './port/index.ts'
import {
  Adaptive,
  Cache,
  type CacheOptions,
  CronJob,
  type CronOptions,
  type CronRun,
  type CronSchedule,
  type Done,
  Election,
  type ElectionOptions,
  electionNames,
  finishOnce,
  forgetOnce,
  type Learning,
  type Lock,
  type LockKeys,
  type LockOptions,
  type LockTry,
  lock,
  type OnceDone,
  type OnceOptions,
  once,
  onceKey,
  onceResult,
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
    // Plain JavaScript can call it.
    if (!(client instanceof Client)) {
      throw invalid("new Leasehold() opens nothing: write 'await Leasehold.open(url)'")
    }
    this.#client = client
    // Loaded on the first check, so that other users do not load network code.
    this.registry = new Registry(client, () => import('./probes/index.ts'))
    this.adaptive = new Adaptive(client)
    this.#pools = new Pools(client, this.adaptive)
  }

  /**
   * Opens a store by its URL, such as `'memory:'` (in this process) or `'file:./data'` (durable, in
   * a folder), or uses a store object. Several servers on one engine are an array of their URLs, or
   * one string with commas: the client uses one of them, and another when it fails. `close` closes a store that was opened here, but not a store
   * object.
   */
  static async open(
    urlOrStore: string | URL | readonly (string | URL)[] | LeaseStore,
    options: LeaseholdOptions = {},
  ): Promise<Leasehold> {
    // Check the options first: otherwise nobody would close the store.
    const settings = settingsOf(options)
    const named = { ...options, holder: settings.holder }
    if (Array.isArray(urlOrStore) || typeof urlOrStore === 'string' || urlOrStore instanceof URL) {
      const store = await openStore(urlOf(urlOrStore), settings)
      return new Leasehold(new Client(store, named, true))
    }
    refuseServerOptions(settings.server)
    if (isStore(urlOrStore)) return new Leasehold(new Client(urlOrStore, named))
    throw invalid(`store is ${show(urlOrStore)}: give 'memory:', 'file:./folder' or a store object`)
  }

  /** The name of this holder, as others see it. */
  get holder(): string {
    return this.#client.holder
  }

  get guarantees(): Guarantees {
    return this.#client.guarantees
  }

  /** Listens to an event, such as `acquired`, `released`, `lost` or `closed`. Returns how to stop it. */
  on<Name extends keyof ClientEvents>(
    name: Name,
    listener: (event: ClientEvents[Name]) => void,
  ): () => void {
    return this.#client.on(name, listener)
  }

  /**
   * Waits in the queue, first in first out, until the lock is held. Several keys: all or none, each in
   * a mode of its own if it is given as `{ key, mode }`.
   */
  lock(keys: LockKeys, options?: Learning<LockOptions>): Promise<Lock> {
    if (options?.ttl === 'adaptive') return this.#lockAdaptive(keys, options)
    return lock(this.#client, keys, options as LockOptions)
  }

  /** Takes the lock if it is free now; otherwise returns the current holder. */
  tryLock(keys: LockKeys, options?: Learning<LockOptions>): Promise<LockTry> {
    if (options?.ttl === 'adaptive') return this.#tryLockAdaptive(keys, options)
    return tryLock(this.#client, keys, options as LockOptions)
  }

  /** Takes a lost lock back, if nobody else has held its keys meanwhile. */
  reclaim(lost: Lock, options?: LockOptions): Promise<LockTry> {
    return reclaim(this.#client, lost, options)
  }

  /** Runs `work` while it holds the lock. Fails with `lost` if the lock ended before the work. */
  withLock<Result>(keys: LockKeys, work: (lock: Lock) => Promise<Result> | Result): Promise<Result>
  withLock<Result>(
    keys: LockKeys,
    options: Learning<LockOptions>,
    work: (lock: Lock) => Promise<Result> | Result,
  ): Promise<Result>
  withLock<Result>(
    keys: LockKeys,
    optionsOrWork: Learning<LockOptions> | ((lock: Lock) => Promise<Result> | Result),
    work?: (lock: Lock) => Promise<Result> | Result,
  ): Promise<Result> {
    if (typeof optionsOrWork === 'function') {
      // Plain JavaScript can swap the last two: its options would be ignored.
      if (work !== undefined) {
        const order = 'options come before the work: write withLock(keys, options, work)'
        return Promise.reject(invalid(order))
      }
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
  sessions<Data = unknown>(name?: string, options?: SessionsOptions & CallOptions): Sessions<Data> {
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

  /** Reads the names of the elections that have a candidate now. */
  elections(options?: CallOptions): Promise<readonly string[]> {
    return electionNames(this.#client.limitedTo(timeoutIn('elections', options)).store)
  }

  /**
   * Runs `work` once in the whole fleet, and remembers that it is done, with its result. Whoever
   * calls it later gets that result. Work that failed, or whose process died, is not done.
   */
  once<Result>(
    name: string,
    work: (lock: Lock) => Promise<Result> | Result,
    options?: OnceOptions,
  ): Promise<OnceDone<Result>> {
    return once(this.#client, name, work, options)
  }

  /** What `once` has done under this name; `undefined` if nothing, or if it is forgotten. */
  onceResult<Result = unknown>(
    name: string,
    options?: CallOptions,
  ): Promise<Done<Result> | undefined> {
    return onceResult<Result>(this.#client, name, options)
  }

  /** The key of the lock that `once` holds while the work of this name runs. */
  onceKey(name: string): string {
    return onceKey(name)
  }

  /**
   * Stores the result of work that ran elsewhere, under the lock of `onceKey` with this token, and
   * returns what is stored: for servers that act for callers in other languages.
   */
  finishOnce<Result>(
    name: string,
    token: Token,
    result: Result,
    options?: Pick<OnceOptions, 'keep'>,
  ): Promise<OnceDone<Result> | undefined> {
    return finishOnce(this.#client, name, token, result, options)
  }

  /** Forgets what `once` has done under this name. Returns whether there was something. */
  forgetOnce(name: string, options?: CallOptions): Promise<boolean> {
    return forgetOnce(this.#client, name, options)
  }

  /**
   * Runs `work` on a schedule, in one process of the fleet at a time. Call it in every process that
   * may run it: if one dies, another takes over, and no run is left out or done twice.
   */
  cron(
    name: string,
    schedule: CronSchedule,
    work: (run: CronRun) => unknown,
    options: CronOptions = {},
  ): Promise<CronJob> {
    return CronJob.start(this.#client, name, schedule, work, options)
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

  async #lockAdaptive(keys: LockKeys, options: Learning<LockOptions>): Promise<Lock> {
    const timed = await this.adaptive.timed<LockOptions>(options)
    const held = await lock(this.#client, keys, timed.options)
    timed.track(held)
    return held
  }

  async #tryLockAdaptive(keys: LockKeys, options: Learning<LockOptions>): Promise<LockTry> {
    const timed = await this.adaptive.timed<LockOptions>(options)
    const attempt = await tryLock(this.#client, keys, timed.options)
    if (attempt.lock !== undefined) timed.track(attempt.lock)
    return attempt
  }

  async #withLockAdaptive<Result>(
    keys: LockKeys,
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

/** The URLs of several servers as one. */
function urlOf(given: string | URL | readonly (string | URL)[]): string {
  if (!Array.isArray(given)) return String(given)
  const other = given.find((url) => !/^(https?|wss?):/.test(String(url)))
  if (given.length > 0 && other === undefined) return given.join(',')
  throw invalid(
    `${given.length === 0 ? 'no URL is given' : `${show(String(other))} is not the URL of a server`}: an array has the URLs of servers on one engine, such as ['http://a:7420', 'http://b:7420']`,
  )
}

function isStore(value: unknown): value is LeaseStore {
  if (typeof value !== 'object' || value === null) return false
  const store = value as Partial<LeaseStore>
  return typeof store.grant === 'function' && typeof store.guarantees === 'object'
}
