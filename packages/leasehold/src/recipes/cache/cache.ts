import { type Client, Conflict, type Hold, type RecipeEvents } from '../../client/index.ts'
import {
  type Duration,
  formatDuration,
  invalid,
  isLeaseholdError,
  LeaseholdError,
  milliseconds,
  show,
  type Token,
} from '../../port/index.ts'
import { encodedPart, functionOf, keyPart, objectOf } from '../arguments.ts'
import { jsonOf } from '../json.ts'
import { unlessAborted } from '../sleep.ts'
import { ChangeSignal } from './change-signal.ts'
import { type EntryKeys, type EntryState, entryKeys } from './entry-state.ts'
import { type EntryLife, EntryStore } from './entry-store.ts'

/**
 * A cache that all processes on the store share, in which a missing value is loaded by one of them.
 *
 * **Promised.** While a loader holds its lease no other loads the same key, in whatever process; the
 * others wait, woken by the store's news, or are given the stale value. A loader that lost its
 * lease, or whose key was set or deleted meanwhile, cannot store what it loaded: the store refuses
 * it. When a loader dies, the next begins within `loadTtl`. When one fails, its error reaches all
 * who wait, and nobody tries again for `retryAfter`. A value is gone `ttl` (and `stale`) after it was
 * stored.
 *
 * **Not promised.** That a loader runs once ever: one that lost its lease may still be at work while
 * the next begins, so it should heed its `signal`. A hit costs one reading of the store, unless
 * `local` allows for values that are behind the store by so much. When the store cannot be reached
 * `get` fails: the cache does not decide whether to load without it.
 */
export class Cache<Value = unknown> {
  readonly #client: Client
  readonly #name: string
  readonly #settings: Settings
  readonly #entries: EntryStore
  /** Loads and waits of this process, one for each key, for all who ask meanwhile. */
  readonly #loads = new Map<string, Promise<string>>()
  readonly #reloads = new Set<string>()
  readonly #copies = new Map<string, { readonly text: string; readonly until: number }>()

  constructor(client: Client, name: string, options: CacheOptions = {}) {
    this.#client = client
    this.#name = keyPart('the name of the cache', name)
    this.#settings = settingsOf(options)
    this.#entries = new EntryStore(client)
  }

  /** The value, loaded by the loader where it is missing. Fails as the loader does. */
  async get(key: string, loader: Loader<Value>): Promise<Value> {
    functionOf(`the loader of ${show(key)}`, loader)
    const keys = this.#keysOf(key)
    const copy = this.#copies.get(key)
    if (copy !== undefined && copy.until > this.#client.now()) return JSON.parse(copy.text) as Value
    let load = this.#loads.get(key)
    if (load === undefined) {
      load = this.#fetch(key, keys, loader).finally(() => {
        if (this.#loads.get(key) === load) this.#loads.delete(key)
        // What it has read is older than a change that was made here since.
        else this.#copies.delete(key)
      })
      this.#loads.set(key, load)
    }
    return JSON.parse(await load) as Value
  }

  /** The value if it is there, stale ones included; never loads. */
  async peek(key: string): Promise<Value | undefined> {
    const state = await this.#entries.state(this.#keysOf(key))
    const text = state.type === 'fresh' ? state.text : this.#staleOf(state)
    return text === undefined ? undefined : (JSON.parse(text) as Value)
  }

  /** Stores a value. Whoever loads one at the moment cannot store it any more. */
  async set(key: string, value: Value): Promise<void> {
    const text = jsonOf(value, `the value of ${show(key)}`)
    await this.#entries.set(this.#keysOf(key), text, this.#settings)
    this.#forget(key)
  }

  /** Removes a value. Whoever loads one at the moment cannot store it any more. */
  async delete(key: string): Promise<void> {
    await this.#entries.delete(this.#keysOf(key))
    this.#forget(key)
  }

  /** Whoever asks from now on is not given what was read or loaded before. */
  #forget(key: string): void {
    this.#copies.delete(key)
    this.#loads.delete(key)
  }

  #keysOf(key: string): EntryKeys {
    return entryKeys(this.#name, encodedPart('the key', key))
  }

  async #fetch(key: string, keys: EntryKeys, loader: Loader<Value>): Promise<string> {
    const state = await this.#entries.state(keys)
    if (state.type === 'fresh') return this.#keep(key, state.text)
    const stale = this.#staleOf(state)
    if (stale === undefined) return this.#loadOrWait(key, keys, loader)
    if (state.type === 'missing' || state.type === 'orphaned') this.#reload(key, keys, loader)
    return stale
  }

  /** Loads in the background, if nobody else does. Those who asked have the stale value. */
  #reload(key: string, keys: EntryKeys, loader: Loader<Value>): void {
    if (this.#reloads.has(key)) return
    this.#reloads.add(key)
    this.#tryToLoad(key, keys, loader)
      .catch((error: unknown) => this.#warn('failed', key, `loading again failed: ${error}`))
      .finally(() => this.#reloads.delete(key))
  }

  async #loadOrWait(key: string, keys: EntryKeys, loader: Loader<Value>): Promise<string> {
    const first = await this.#tryToLoad(key, keys, loader)
    if (first !== undefined) return first
    const { wait } = this.#settings
    const changes = new ChangeSignal(this.#client, keys.base, wait, () => timeoutError(key, wait))
    try {
      for (;;) {
        // From before the look, so that nothing that happens after it goes unnoticed.
        const change = changes.next()
        const state = await this.#entries.state(keys)
        if (state.type === 'fresh') return this.#keep(key, state.text)
        if (state.type === 'failed') throw new LoadError(key, state.holder, state.message)
        if (state.type !== 'loading') {
          const text = await this.#tryToLoad(key, keys, loader)
          if (text !== undefined) return text
        }
        await change
      }
    } finally {
      changes.close()
    }
  }

  /** Loads if it is free to be loaded; `undefined` where somebody else has that right. */
  async #tryToLoad(
    key: string,
    keys: EntryKeys,
    loader: Loader<Value>,
  ): Promise<string | undefined> {
    const state = await this.#entries.state(keys)
    if (state.type === 'fresh') return this.#keep(key, state.text)
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
    let text: string
    try {
      const { signal, token } = hold
      const loaded = await unlessAborted([signal], (async () => loader({ key, signal, token }))())
      text = jsonOf(loaded, `what the loader of ${show(key)} gave`)
      if (await this.#commit(key, keys, hold, text)) return this.#keep(key, text)
    } catch (error) {
      if (hold.held) await this.#publishFailure(key, keys, error)
      else {
        const newer = await this.#entries.state(keys).catch(() => undefined)
        if (newer?.type === 'fresh') return newer.text
      }
      throw error
    }
    this.#warn('refused', key, 'a value was loaded too late to be stored')
    const newer = await this.#entries.state(keys)
    return newer.type === 'fresh' ? newer.text : text
  }

  /** Whether it was stored, as far as is known; where it is not known, the value is good anyway. */
  async #commit(key: string, keys: EntryKeys, hold: Hold, text: string): Promise<boolean> {
    try {
      return await this.#entries.commit(keys, hold, text, this.#settings)
    } catch (error) {
      if (!isLeaseholdError(error) || error.outcome !== 'unknown') throw error
      this.#warn('unstored', key, `it is not known whether the value was stored: ${error.message}`)
      return true
    }
  }

  /** That it failed is told as well as can be: the loader's own error matters more. */
  async #publishFailure(key: string, keys: EntryKeys, error: unknown): Promise<void> {
    const message = error instanceof Error ? error.message : String(error)
    this.#warn('failed', key, `loading failed: ${message}`)
    const { retryAfter } = this.#settings
    if (retryAfter === 0) return
    const ttl = Math.max(retryAfter, this.#client.guarantees.ttl.min)
    await this.#entries.fail(keys, message, ttl).catch(() => {})
  }

  /** Keeps a copy for as long as this process may do without asking. */
  #keep(key: string, text: string): string {
    const { local } = this.#settings
    if (local === 0) return text
    this.#copies.delete(key)
    this.#copies.set(key, { text, until: this.#client.now() + local })
    if (this.#copies.size > COPIES_MAX) {
      const [oldest] = this.#copies.keys()
      this.#copies.delete(oldest!)
    }
    return text
  }

  #staleOf({ stale }: Exclude<EntryState, { type: 'fresh' }>): string | undefined {
    return this.#settings.stale > 0 ? stale : undefined
  }

  #warn(event: RecipeEvents['cache'], key: string, detail: string): void {
    const { load } = this.#keysOf(key)
    this.#client.emit({ recipe: 'cache', event, key: load, detail, level: 'warn' })
  }
}

export interface CacheOptions {
  /** How long a value is fresh. 10 minutes if not given. */
  readonly ttl?: Duration | undefined
  /** How much longer it is given out while somebody loads it again. 0 if not given. */
  readonly stale?: Duration | undefined
  /** How long to wait for another's loader at most; then `get` fails with `timeout`. 30 s. */
  readonly wait?: Duration | undefined
  /** For how long nobody tries again after a loader failed. 1 s if not given; 0 for at once. */
  readonly retryAfter?: Duration | undefined
  /** How soon a loader that died is replaced. 10 s if not given. */
  readonly loadTtl?: Duration | undefined
  /** How long a loader may take at most. A minute if not given. */
  readonly loadMax?: Duration | undefined
  /**
   * For how long this process gives out what it read without asking the store again, for the last
   * 1000 keys. 0 if not given.
   */
  readonly local?: Duration | undefined
}

export interface LoaderContext {
  readonly key: string
  /** Aborted when another may load: what is loaded after that cannot be stored. */
  readonly signal: AbortSignal
  /** The fencing token of the right to load. */
  readonly token: Token
}

/** Gives the value, as anything that can be written as JSON. */
export type Loader<Value> = (context: LoaderContext) => Promise<Value> | Value

/** A loader of another process failed. The error of one's own loader comes as it was thrown. */
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
  objectOf('options', options)
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
      `local ${formatDuration(local)} is longer than ttl ${formatDuration(ttl)}: copies would outlive the value`,
    )
  }
  if (loadTtl > loadMax) {
    throw invalid(
      `loadTtl ${formatDuration(loadTtl)} is longer than loadMax ${formatDuration(loadMax)}: make it at most as long`,
    )
  }
  return settings
}

function timeoutError(key: string, wait: number): LeaseholdError {
  return new LeaseholdError(
    'timeout',
    `${show(key)} was not loaded within ${formatDuration(wait)}: wait for longer, or see why its loader takes so long`,
  )
}
