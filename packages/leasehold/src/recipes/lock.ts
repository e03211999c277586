import { type Client, Conflict, type Hold, type HoldOptions } from '../client/index.ts'
import {
  type ClaimSpec,
  invalid,
  type Key,
  LeaseholdError,
  type Mode,
  show,
  type Token,
} from '../port/index.ts'
import { functionOf } from './arguments.ts'
import { inner } from './inner-lock.ts'

/**
 * A lock: one key, held by one holder at a time, or by several readers with mode `shared`. Several
 * keys are locked together: all of them or none, with one place in the queue of each. So two
 * holders that want the same keys in a different order cannot deadlock.
 *
 * A paused holder may outlive its lock. It notices at its next look at the lock, but a write that
 * it started earlier goes on. So send `lock.token` with every write, and let the resource refuse a
 * token that is lower than one it has seen.
 */
export type Lock = Hold

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

/** Waits in the queue, first in, first out, until the lock is held. */
export function lock(
  client: Client,
  keys: Key | readonly Key[],
  options?: LockOptions,
): Promise<Lock> {
  if (options?.within !== undefined) return lockWithin(keys, options)
  return client.hold(claimsOf(keys, options), options)
}

async function lockWithin(keys: Key | readonly Key[], options: LockOptions): Promise<Lock> {
  return inner(keys, options)
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
  keys: Key | readonly Key[],
  options?: LockOptions,
): Promise<LockTry> {
  if (options?.within !== undefined) return tried(inner(keys, options))
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
    await Promise.all(lost.keys.map((key) => assertLastHeld(client, key, lost.claimToken)))
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
 * with `lost`, because somebody else may have started the same work.
 */
export async function withLock<Result>(
  client: Client,
  keys: Key | readonly Key[],
  options: LockOptions | undefined,
  work: (lock: Lock) => Promise<Result> | Result,
): Promise<Result> {
  functionOf(`the work under ${show(keys)}`, work)
  const held = await lock(client, keys, options)
  try {
    const result = await work(held)
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

function claimsOf(
  keys: Key | readonly Key[],
  options: LockOptions | undefined,
): readonly ClaimSpec[] {
  if (Array.isArray(keys)) return keys.map((key) => claimOf(key, options))
  return [claimOf(keys as Key, options)]
}

function claimOf(key: Key, options: LockOptions | undefined): ClaimSpec {
  // The client refuses options that are not an object.
  if (!options) return { key }
  const { mode, limit, value } = options
  return { key, mode, limit, value }
}
