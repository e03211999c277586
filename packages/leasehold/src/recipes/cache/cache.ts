import { type Client, Conflict, type Hold, type RecipeEvents } from '../../client/index.ts'
import {
  type Duration,
  formatDuration,
  invalid,
  isLeaseholdError,
  knownNames,
  LeaseholdError,
  type LeaseId,
  milliseconds,
  show,
  type Token,
} from '../../port/index.ts'
import { encodedPart, functionOf, keyPart, optionsOf } from '../arguments.ts'
import { unlessAborted } from '../sleep.ts'
import { jsonOf } from '../values/json.ts'
import { ChangeSignal } from './change-signal.ts'
import { type EntryKeys, type EntryState, entryKeys } from './entry-state.ts'
import { type EntryLife, EntryStore } from './entry-store.ts'

/**
 * A cache that all processes on the store share. If a value is missing, one process loads it.
 *
 * **Promised.** While a loader holds its lease, no process loads the same key. The others wait for
 * a change event, or get the stale value. A loader cannot store its value if it lost its lease, or
 * if the key was set or deleted meanwhile: the store refuses. If a loader dies, the next starts
 * within `loadTtl`. If a loader fails, all waiters get its error, and nobody retries for
 * `retryAfter`. A value expires `ttl` (plus `stale`) after it was stored.
 *
 * **Not promised.** A loader may run more than once: one that lost its lease may still run when the
 * next starts, so it should watch its `signal`. A hit costs one read of the store, unless `local`
 * allows older values. If the store is unreachable, `get` fails: the cache does not decide whether
 * to load without it.
 */
export class Cache<Value = unknown> {
  readonly #client: Client
  readonly #name: string
  readonly #settings: Settings
  readonly #entries: EntryStore
  /** Loads and waits of this process, shared by all callers of the same key. */
  readonly #loads = new Map<string, Promise<string>>()
  readonly #reloads = new Set<string>()
  readonly #copies = new Map<string, { readonly json: string; readonly until: number }>()

  constructor(client: Client, name: string, options: CacheOptions = {}) {
    this.#client = client.limitedTo(optionsOf('cache', options, CACHE_OPTIONS).timeout)
    this.#name = keyPart('the name of the cache', name)
    this.#settings = settingsOf(options)
    this.#entries = new EntryStore(this.#client)
  }

  /** Returns the value, and loads it if it is missing. Fails if the loader fails. */
  async get(key: string, loader: Loader<Value>, nothing?: undefined): Promise<Value> {
    functionOf(`the loader of ${show(key)}`, loader)
    // Plain JavaScript can give options here: they would be ignored.
    if (nothing !== undefined) {
      throw invalid(`get has no options: give them to cache(${show(this.#name)}, options)`)
    }
    const keys = this.#keysOf(key)
    const copy = this.#copies.get(key)
    if (copy !== undefined && copy.until > this.#client.now()) return JSON.parse(copy.json) as Value
    let load = this.#loads.get(key)
    if (load === undefined) {
      load = this.#fetch(key, keys, loader).finally(() => {
        if (this.#loads.get(key) === load) this.#loads.delete(key)
        // The value was changed here since, so what this load has read is outdated.
        else this.#copies.delete(key)
      })
      this.#loads.set(key, load)
    }
    return JSON.parse(await load) as Value
  }

  /** Returns the value if there is one, even a stale one. Never loads. */
  async peek(key: string): Promise<Value | undefined> {
    const state = await this.#entries.state(this.#keysOf(key))
    const json = state.type === 'fresh' ? state.json : this.#staleOf(state)
    return json === undefined ? undefined : (JSON.parse(json) as Value)
  }

  /**
   * Returns the value, or makes the caller the loader of a missing one: for a caller that loads
   * elsewhere and renews the lease itself, such as a client of a server in another language. While
   * somebody else loads, it waits for up to `wait`.
   */
  async startLoad(key: string): Promise<LoadStart<Value>> {
    const keys = this.#keysOf(key)
    const { wait } = this.#settings
    const changes = new ChangeSignal(this.#client, keys.base, wait, () => timeoutError(key, wait))
    try {
      for (;;) {
        const change = changes.next()
        const state = await this.#entries.state(keys)
        if (state.type === 'fresh') return { value: JSON.parse(state.json) as Value }
        if (state.type === 'failed') throw new LoadError(key, state.holder, state.message)
        if (state.type === 'orphaned') await this.#entries.clear(state.marks)
        const { loadTtl: ttl, loadMax: maxLife } = this.#settings
        const { store, holder } = this.#client
        const claims = [{ key: keys.load }]
        const granted = await store.grant({ holder, ttl, maxLife, claims, ifFree: true })
        if (granted.outcome === 'granted') return { lease: granted.lease, token: granted.token }
        await change
      }
    } finally {
      changes.close()
    }
  }

  /** Stores what the loader with this token has loaded. Returns `false` if it is too late. */
  async finishLoad(key: string, token: Token, value: Value): Promise<boolean> {
    const json = jsonOf(value, `the value of ${show(key)}`)
    return this.#entries.commit(this.#keysOf(key), { claimToken: token }, json, this.#settings)
  }

  /** Stores a value. A load that is running cannot store its value any more. */
  async set(key: string, value: Value): Promise<void> {
    const json = jsonOf(value, `the value of ${show(key)}`)
    await this.#entries.set(this.#keysOf(key), json, this.#settings)
    this.#forget(key)
  }

  /** Removes a value. A load that is running cannot store its value any more. */
  async delete(key: string): Promise<void> {
    await this.#entries.delete(this.#keysOf(key))
    this.#forget(key)
  }

  /** Later callers do not get what was read or loaded before. */
  #forget(key: string): void {
    this.#copies.delete(key)
    this.#loads.delete(key)
  }

  #keysOf(key: string): EntryKeys {
    return entryKeys(this.#name, encodedPart('the key', key))
  }

  async #fetch(key: string, keys: EntryKeys, loader: Loader<Value>): Promise<string> {
    const state = await this.#entries.state(keys)
    if (state.type === 'fresh') return this.#keep(key, state.json)
    const stale = this.#staleOf(state)
    if (stale === undefined) return this.#loadOrWait(key, keys, loader)
    if (state.type === 'missing' || state.type === 'orphaned') this.#reload(key, keys, loader)
    return stale
  }

  /** Loads in the background if nobody else does. The callers already have the stale value. */
  #reload(key: string, keys: EntryKeys, loader: Loader<Value>): void {
    if (this.#reloads.has(key)) return
    this.#reloads.add(key)
    this.#tryToLoad(key, keys, loader)
      .catch((error: unknown) => this.#warn('failed', key, `reload failed: ${error}`))
      .finally(() => this.#reloads.delete(key))
  }

  async #loadOrWait(key: string, keys: EntryKeys, loader: Loader<Value>): Promise<string> {
    const first = await this.#tryToLoad(key, keys, loader)
    if (first !== undefined) return first
    const { wait } = this.#settings
    const changes = new ChangeSignal(this.#client, keys.base, wait, () => timeoutError(key, wait))
    try {
      for (;;) {
        // Started before the read, so that no change is missed.
        const change = changes.next()
        const state = await this.#entries.state(keys)
        if (state.type === 'fresh') return this.#keep(key, state.json)
        if (state.type === 'failed') throw new LoadError(key, state.holder, state.message)
        if (state.type !== 'loading') {
          const json = await this.#tryToLoad(key, keys, loader)
          if (json !== undefined) return json
        }
        await change
      }
    } finally {
      changes.close()
    }
  }

  /** Loads the value, or returns `undefined` if somebody else is loading it. */
  async #tryToLoad(
    key: string,
    keys: EntryKeys,
    loader: Loader<Value>,
  ): Promise<string | undefined> {
    const state = await this.#entries.state(keys)
    if (state.type === 'fresh') return this.#keep(key, state.json)
    if (state.type === 'failed') throw new LoadError(key, state.holder, state.message)
    if (state.type === 'orphaned') await this.#entries.clear(state.marks)
    const { loadTtl, loadMax } = this.#settings
    const claim = { key: keys.load }
    const hold = await this.#client.tryHold([claim], { ttl: loadTtl, maxHold: loadMax })
    if (hold instanceof Conflict) return undefined
    try {
      return await this.#load(key, keys, loader, hold)
    } finally {
      await hold[Symbol.asyncDispose]()
    }
  }

  async #load(key: string, keys: EntryKeys, loader: Loader<Value>, hold: Hold): Promise<string> {
    let json: string
    try {
      const { signal, token } = hold
      const loaded = await unlessAborted([signal], (async () => loader({ key, signal, token }))())
      json = jsonOf(loaded, `the result of the loader of ${show(key)}`)
      if (await this.#commit(key, keys, hold, json)) return this.#keep(key, json)
    } catch (error) {
      if (hold.held) await this.#publishFailure(key, keys, error)
      else {
        const newer = await this.#entries.state(keys).catch(() => undefined)
        if (newer?.type === 'fresh') return newer.json
      }
      throw error
    }
    this.#warn('refused', key, 'the loader finished too late: its value was not stored')
    const newer = await this.#entries.state(keys)
    return newer.type === 'fresh' ? newer.json : json
  }

  /** Whether the value was stored. If the store does not answer, the value is still good to use. */
  async #commit(key: string, keys: EntryKeys, hold: Hold, json: string): Promise<boolean> {
    try {
      return await this.#entries.commit(keys, hold, json, this.#settings)
    } catch (error) {
      if (!isLeaseholdError(error)) throw error
      // A read without an answer fails with `timeout`, a write with an unknown outcome.
      if (error.outcome !== 'unknown' && error.code !== 'timeout') throw error
      this.#warn('unstored', key, `the value may not be stored: ${error.message}`)
      return true
    }
  }

  /** Publishes the failure if possible. The loader's own error matters more. */
  async #publishFailure(key: string, keys: EntryKeys, error: unknown): Promise<void> {
    const message = error instanceof Error ? error.message : String(error)
    this.#warn('failed', key, `loading failed: ${message}`)
    const { retryAfter } = this.#settings
    if (retryAfter === 0) return
    const ttl = Math.max(retryAfter, this.#client.guarantees.ttl.min)
    await this.#entries.fail(keys, message, ttl).catch(() => {})
  }

  /** Keeps a copy for as long as `local` allows. */
  #keep(key: string, json: string): string {
    const { local } = this.#settings
    if (local === 0) return json
    this.#copies.delete(key)
    this.#copies.set(key, { json, until: this.#client.now() + local })
    if (this.#copies.size > COPIES_MAX) {
      const [oldest] = this.#copies.keys()
      this.#copies.delete(oldest!)
    }
    return json
  }

  #staleOf({ stale }: Exclude<EntryState, { type: 'fresh' }>): string | undefined {
    return this.#settings.stale > 0 ? stale : undefined
  }

  #warn(event: RecipeEvents['cache'], key: string, detail: string): void {
    const { load } = this.#keysOf(key)
    this.#client.emit({ recipe: 'cache', event, key: load, detail, level: 'warn' })
  }
}

/** The value; or the lease and the fencing token of the caller that must load it. */
export type LoadStart<Value> =
  | { readonly value: Value }
  | { readonly lease: LeaseId; readonly token: Token }

export interface CacheOptions {
  /** How long a value is fresh. Default: 10 minutes. */
  readonly ttl?: Duration | undefined
  /** How much longer a stale value is returned while it is reloaded. Default: 0. */
  readonly stale?: Duration | undefined
  /** How long to wait for another loader; then `get` fails with `timeout`. Default: 30 s. */
  readonly wait?: Duration | undefined
  /** How long nobody retries after a loader failed; 0 means retry at once. Default: 1 s. */
  readonly retryAfter?: Duration | undefined
  /** How soon a dead loader is replaced. Default: 10 s. */
  readonly loadTtl?: Duration | undefined
  /** How long a loader may take. Default: 1 minute. */
  readonly loadMax?: Duration | undefined
  /**
   * How long this process may return what it has read without asking the store again. Applies to
   * the last 1000 keys. Default: 0.
   */
  readonly local?: Duration | undefined
  /** How long the store may take to answer one call. The client's `timeout` if not given. */
  readonly timeout?: Duration | undefined
}

const CACHE_OPTIONS = knownNames<CacheOptions>({
  ttl: true,
  stale: true,
  wait: true,
  retryAfter: true,
  loadTtl: true,
  loadMax: true,
  local: true,
  timeout: true,
})

export interface LoaderContext {
  readonly key: string
  /** Aborted when another process may load. What is loaded after that cannot be stored. */
  readonly signal: AbortSignal
  /** The fencing token of this load. */
  readonly token: Token
}

/** Returns the value. It must be JSON-serializable. */
export type Loader<Value> = (context: LoaderContext) => Promise<Value> | Value

/** A loader in another process failed. An error of the own loader is thrown unchanged. */
export class LoadError extends Error {
  override readonly name = 'LoadError'
  readonly key: string
  readonly holder: string

  constructor(key: string, holder: string, message: string) {
    super(`loading ${show(key)} failed at ${holder}: ${message}`)
    this.key = key
    this.holder = holder
  }
}

const COPIES_MAX = 1000

interface Settings extends EntryLife {
  readonly wait: number
  readonly retryAfter: number
  readonly loadTtl: number
  readonly loadMax: number
  readonly local: number
}

function settingsOf(options: CacheOptions): Settings {
  const span = (name: keyof CacheOptions, otherwise: number) =>
    milliseconds(options[name] ?? otherwise, name)
  const settings = {
    ttl: span('ttl', 10 * 60_000),
    stale: span('stale', 0),
    wait: span('wait', 30_000),
    retryAfter: span('retryAfter', 1000),
    loadTtl: span('loadTtl', 10_000),
    loadMax: span('loadMax', 60_000),
    local: span('local', 0),
  }
  const { local, ttl, loadTtl, loadMax } = settings
  if (local > ttl) {
    throw invalid(
      `local ${formatDuration(local)} is longer than ttl ${formatDuration(ttl)}. Make local at most as long as ttl`,
    )
  }
  if (loadTtl > loadMax) {
    throw invalid(
      `loadTtl ${formatDuration(loadTtl)} is longer than loadMax ${formatDuration(loadMax)}. Make loadTtl at most as long as loadMax`,
    )
  }
  return settings
}

function timeoutError(key: string, wait: number): LeaseholdError {
  return new LeaseholdError(
    'timeout',
    `${show(key)} was not loaded within ${formatDuration(wait)}. Increase wait, or find out why the loader is slow`,
  )
}
