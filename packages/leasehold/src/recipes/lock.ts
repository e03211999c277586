import { type Client, Conflict, type Hold, type HoldOptions } from '../client/index.ts'
import { type ClaimSpec, type Key, LeaseholdError, type Mode, show } from '../port/index.ts'

/**
 * The lock: one key, held by one holder at a time; or by several that only read, with mode `shared`.
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
}

/** Waits in line, first in first out, until the lock is held. */
export function lock(client: Client, key: Key, options?: LockOptions): Promise<Lock> {
  return client.hold([claimOf(key, options)], options)
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
export async function tryLock(client: Client, key: Key, options?: LockOptions): Promise<LockTry> {
  const result = await client.tryHold([claimOf(key, options)], options)
  if (result instanceof Conflict) {
    return { lock: undefined, conflict: result, [Symbol.asyncDispose]: async () => {} }
  }
  const release = () => result[Symbol.asyncDispose]()
  return { lock: result, conflict: undefined, [Symbol.asyncDispose]: async () => release() }
}

/**
 * Does some work under the lock and releases it afterwards.
 *
 * Answers with the work's own result, or its own error. Work that ended after the lock was lost is
 * never reported as done: somebody else may have begun the same work, so it fails with `lost`.
 */
export async function withLock<Result>(
  client: Client,
  key: Key,
  options: LockOptions | undefined,
  work: (lock: Lock) => Promise<Result> | Result,
): Promise<Result> {
  if (typeof work !== 'function') {
    throw new LeaseholdError(
      'invalid-argument',
      `the work under ${show(key)} is ${show(work)}: give a function`,
    )
  }
  const held = await lock(client, key, options)
  try {
    const result = await work(held)
    // Looked at before the release, which would hide a loss.
    if (held.state === 'lost') held.assertHeld()
    return result
  } finally {
    await held[Symbol.asyncDispose]()
  }
}

function claimOf(key: Key, options: LockOptions | undefined): ClaimSpec {
  // Options that are none are refused by the client.
  if (!options) return { key }
  const { mode, limit, value } = options
  return { key, mode, limit, value }
}
