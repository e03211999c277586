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
 * The lock: one key, held by one holder at a time; or by several that only read, with mode `shared`.
 * Several keys are locked together: all of them or none, in one place in line on each, so that two
 * who want the same keys in another order cannot wait for each other.
 *
 * A paused holder may outlive its lock: it finds out at its first look at the lock, but a write that
 * it had already begun goes on. So send `lock.token` with every write, and have the resource refuse
 * a token that is lower than one it has seen.
 */
export type Lock = Hold

export interface LockOptions extends HoldOptions {
  /** `exclusive` if not given. Shared locks hold together, but not beside an exclusive one. */
  readonly mode?: Mode | undefined
  /** For a shared lock: at most so many hold at a time, this one included. */
  readonly limit?: number | undefined
  /** A text that others can read: what it is held for, or where its holder can be reached. */
  readonly value?: string | undefined
  /**
   * A lock that is held already and has these keys: the new one is part of it, with the same token,
   * and releasing it leaves the outer one held. Without this a second lock on the same key waits
   * for the first, also within one process.
   */
  readonly within?: Lock | undefined
}

/** Waits in line, first in first out, until the lock is held. */
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

/**
 * What became of a try: the lock, or who has it. Leaving the block that it was declared in with
 * `await using` releases the lock, if there is one.
 */
export type LockTry = AsyncDisposable &
  (
    | { readonly lock: Lock; readonly conflict: undefined }
    | { readonly lock: undefined; readonly conflict: Conflict }
  )

/** Takes the lock if it is free now. Never waits in line, and leaves no claim where it is not free. */
export async function tryLock(
  client: Client,
  keys: Key | readonly Key[],
  options?: LockOptions,
): Promise<LockTry> {
  if (options?.within !== undefined) return tried(inner(keys, options))
  return tried(await client.tryHold(claimsOf(keys, options), options))
}

/**
 * Takes back a lock that was lost, if nobody else has held its keys meanwhile: what its holder knew
 * of the resource is then still true, and it may go on where it was stopped, with the new lock's
 * token. Where somebody has it now the answer is the conflict; where somebody had it, and has given
 * it back, this fails with `lost` and the reason `superseded`.
 */
export async function reclaim(client: Client, lost: Lock, options?: LockOptions): Promise<LockTry> {
  if (lost?.state !== 'lost') {
    const what =
      lost?.key === undefined ? `the lock is ${show(lost)}` : `${show(lost.key)} is ${lost.state}`
    throw invalid(`${what}: only a lock that was lost can be taken back`)
  }
  const attempt = await tryLock(client, lost.keys, options)
  if (attempt.lock === undefined) return attempt
  try {
    // It is held again, so that nobody can come in between this reading and its use.
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
  const who = last === undefined ? 'it is not known who' : show(last.holder)
  throw new LeaseholdError(
    'lost',
    `${show(key)} (token ${token}) was held by another since (${who}): begin anew with a new lock`,
    { reason: 'superseded', by: last?.holder },
  )
}

/**
 * Does some work under the lock and releases it afterwards.
 *
 * Answers with the work's own result, or its own error. Work that ended after the lock was lost is
 * never reported as done: somebody else may have begun the same work, so it fails with `lost`.
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
    // Looked at before the release, which would hide a loss.
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
  // Options that are none are refused by the client.
  if (!options) return { key }
  const { mode, limit, value } = options
  return { key, mode, limit, value }
}
