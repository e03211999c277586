import { type Client, Conflict, type Hold, type HoldOptions } from '../../client/index.ts'
import {
  type ClaimSpec,
  checkNames,
  invalid,
  type Key,
  knownNames,
  LeaseholdError,
  type Mode,
  show,
  type Token,
} from '../../port/index.ts'
import type { Learning } from '../adaptive.ts'
import { functionOf, optionsOf, refuseWait } from '../arguments.ts'
import { inner } from './inner-lock.ts'

/**
 * A lock: one key, held by one holder at a time, or by several readers with mode `shared`. Several
 * keys are locked together: all of them or none, with one place in the queue of each. So two
 * holders that want the same keys in a different order cannot deadlock.
 *
 * A paused holder may outlive its lock. It notices at its next look at the lock, but a write that
 * it started earlier continues. So send `lock.token` with every write, and let the resource refuse a
 * token that is lower than one it has seen.
 */
export type Lock = Hold

/**
 * A key with a mode of its own, for a lock on several keys that are not all held in the same way. A
 * tree needs this: a shared claim on each parent and an exclusive one on the node itself exclude
 * whoever holds the node, a parent or a child, and nobody else. What is left out is as in the options.
 */
export interface LockKey extends Pick<LockOptions, 'mode' | 'limit' | 'value'> {
  readonly key: Key
}

/** What to lock: one key, or several at once. */
export type LockKeys = Key | LockKey | readonly (Key | LockKey)[]

export interface LockOptions extends HoldOptions {
  /** `exclusive` by default. Shared locks hold together, but not beside an exclusive lock. */
  readonly mode?: Mode | undefined
  /** For a shared lock: the maximum number of holders at a time, including this one. */
  readonly limit?: number | undefined
  /** A string that others can read, such as the purpose or the address of the holder. */
  readonly value?: string | undefined
  /**
   * A lock that is already held and includes these keys. The new lock is part of it and has the
   * same token; releasing it leaves the outer lock held. Without `within`, a second lock on the
   * same key waits for the first, also in the same process.
   */
  readonly within?: Lock | undefined
}

/** The options that everything has that is held like a lock. */
export const HELD_OPTIONS: Record<keyof HoldOptions | 'value', true> = {
  strategy: true,
  ttl: true,
  grace: true,
  renewEvery: true,
  maxHold: true,
  wait: true,
  timeout: true,
  tied: true,
  signal: true,
  parent: true,
  labels: true,
  value: true,
}

const LOCK_OPTIONS = knownNames<Learning<LockOptions>>({
  ...HELD_OPTIONS,
  kind: true,
  mode: true,
  limit: true,
  within: true,
})

const LOCK_KEY = knownNames<LockKey>({ key: true, mode: true, limit: true, value: true })

/** Before the keys, so that swapped arguments are reported as what they are. */
function checkOptions(options: LockOptions | undefined): void {
  if (options !== undefined) optionsOf('a lock', options, LOCK_OPTIONS)
}

/** Waits in the queue, first in, first out, until the lock is held. */
export function lock(client: Client, keys: LockKeys, options?: LockOptions): Promise<Lock> {
  try {
    if (options === undefined) return client.hold(claimsOf(keys, options))
    checkOptions(options)
    if (options?.within !== undefined) return lockWithin(keys, options)
    return client.hold(claimsOf(keys, options), options)
  } catch (error) {
    return Promise.reject(error)
  }
}

async function lockWithin(keys: LockKeys, options: LockOptions): Promise<Lock> {
  return inner(keys as Key | readonly Key[], options)
}

/** The result of a try: the lock, or who holds it. `await using` releases it. */
export type LockTry = AsyncDisposable &
  (
    | { readonly lock: Lock; readonly conflict: undefined }
    | { readonly lock: undefined; readonly conflict: Conflict }
  )

/** Takes the lock if it is free. Never waits, and leaves no claim behind if it is not free. */
export async function tryLock(
  client: Client,
  keys: LockKeys,
  options?: LockOptions,
): Promise<LockTry> {
  checkOptions(options)
  refuseWait('tryLock', 'lock', options)
  if (options?.within !== undefined) return tried(inner(keys as Key | readonly Key[], options))
  return tried(await client.tryHold(claimsOf(keys, options), options))
}

/**
 * Takes back a lost lock if nobody else has held its keys since. Then what the holder knew about
 * the resource is still true, and it may continue with the new lock's token. If somebody holds it
 * now, the result is the conflict. If somebody held it and released it, this fails with `lost` and
 * the reason `superseded`.
 */
export async function reclaim(client: Client, lost: Lock, options?: LockOptions): Promise<LockTry> {
  if (lost?.state !== 'lost') {
    const what =
      lost?.key === undefined ? `the lock is ${show(lost)}` : `${show(lost.key)} is ${lost.state}`
    throw invalid(`${what}: only a lock whose state is lost can be reclaimed`)
  }
  const attempt = await tryLock(client, lost.keys, options)
  if (attempt.lock === undefined) return attempt
  try {
    // The lock is held during this read, so nobody can take it in between.
    await Promise.all(
      lost.keys.map((key) =>
        assertLastHeld(client.limitedTo(options?.timeout), key, lost.claimToken),
      ),
    )
    return attempt
  } catch (error) {
    await attempt.lock[Symbol.asyncDispose]()
    throw error
  }
}

async function assertLastHeld(client: Client, key: Key, token: Token): Promise<void> {
  const [last] = (await client.store.read({ history: key })).tenures
  if (last?.token === token) return
  const who = last === undefined ? 'unknown holder' : show(last.holder)
  throw new LeaseholdError(
    'lost',
    `${show(key)} (token ${token}) was held by another since (${who}). Take a new lock and start again`,
    { reason: 'superseded', by: last?.holder },
  )
}

/**
 * Runs `work` under the lock and releases the lock afterwards.
 *
 * Returns the result of the work, or throws its error. Work that ends after the lock was lost fails
 * with `lost`, because somebody else may have started the same work. The process keeps running until
 * the work ends, even if the work only waits for the signal of the lock.
 */
export async function withLock<Result>(
  client: Client,
  keys: LockKeys,
  options: LockOptions | undefined,
  work: (lock: Lock) => Promise<Result> | Result,
): Promise<Result> {
  functionOf(`the work under ${show(keys)}`, work)
  const held = await lock(client, keys, options)
  try {
    const result = await client.awaited(work(held))
    // Checked before the release, which would hide a loss.
    if (held.state === 'lost') held.assertHeld()
    return result
  } finally {
    await held[Symbol.asyncDispose]()
  }
}

function tried(result: Lock | Conflict): LockTry {
  if (result instanceof Conflict) {
    return { lock: undefined, conflict: result, [Symbol.asyncDispose]: async () => {} }
  }
  const release = () => result[Symbol.asyncDispose]()
  return { lock: result, conflict: undefined, [Symbol.asyncDispose]: async () => release() }
}

function claimsOf(keys: LockKeys, options: LockOptions | undefined): readonly ClaimSpec[] {
  if (Array.isArray(keys)) return keys.map((key) => claimOf(key, options))
  return [claimOf(keys as Key | LockKey, options)]
}

function claimOf(given: Key | LockKey, options: LockOptions | undefined): ClaimSpec {
  if (typeof given === 'object' && given !== null) return claimWithOwnMode(given, options)
  if (!options) return { key: given }
  const { mode, limit, value } = options
  return { key: given, mode, limit, value }
}

function claimWithOwnMode(given: LockKey, options: LockOptions | undefined): ClaimSpec {
  checkNames('a key of a lock', given, LOCK_KEY)
  const { key, mode = options?.mode, limit = options?.limit, value = options?.value } = given
  return { key, mode, limit, value }
}
