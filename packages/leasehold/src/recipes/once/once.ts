import { type CallOptions, type Client, timeoutIn } from '../../client/index.ts'
import { type Duration, type Key, knownNames, type Time, type Token } from '../../port/index.ts'
import { functionOf, optionsOf, stringOf } from '../arguments.ts'
import { HELD_OPTIONS, type Lock, type LockOptions, withLock } from '../lock/lock.ts'
import { type DoneRecord, keepOf, readRecord, removeRecord, writeRecord } from './record.ts'

const NAME_LENGTH_MAX = 512

export interface OnceOptions extends Omit<LockOptions, 'mode' | 'limit' | 'within'> {
  /**
   * How long the store remembers that this was done, and the result. After that it may run again.
   * Default: 30 days. `'infinite'` is for ever.
   */
  readonly keep?: Duration | undefined
}

const KEEP_OPTION = knownNames<Pick<OnceOptions, 'keep'>>({ keep: true })
const ONCE_OPTIONS = knownNames<OnceOptions>({ ...HELD_OPTIONS, keep: true })

/** What was done under a name. */
export interface Done<Result = unknown> {
  /** What the work returned. Other processes get it as parsed JSON. */
  readonly result: Result
  /** Who did it and when. */
  readonly by: string
  readonly at: Time
  /** When the store forgets it. */
  readonly until: Time
}

export interface OnceDone<Result = unknown> extends Done<Result> {
  /** Whether this call ran the work. If not, somebody else has done it. */
  readonly ran: boolean
}

/**
 * Runs `work` once in a fleet: if it was done under this name, by any process, returns that result
 * instead. Calls at the same time wait for the one that runs it.
 *
 * It is done when the work has returned and its result is stored. If the work fails, or its process
 * dies, or its lock is lost, it is not done, and the next caller runs it again. So work that has an
 * effect outside should send `lock.token` with it, as under any lock.
 */
export async function once<Result>(
  given: Client,
  name: string,
  work: (lock: Lock) => Promise<Result> | Result,
  options: OnceOptions = {},
): Promise<OnceDone<Result>> {
  const { run, done } = keysOf(name)
  functionOf(`the work of ${name}`, work)
  const { keep: wanted, ...lockOptions } = optionsOf('once', options, ONCE_OPTIONS)
  // Each call to the store has the timeout, and not only that of the lock.
  const client = given.limitedTo(options.timeout)
  const keep = keepOf(client, wanted)
  const before = await readRecord(client, done)
  if (before !== undefined) return { ran: false, ...doneOf<Result>(before) }
  return withLock(client, run, lockOptions, async (lock) => {
    // Nobody else runs it now, so this answer stays true.
    const earlier = await readRecord(client, done)
    if (earlier !== undefined) return { ran: false, ...doneOf<Result>(earlier) }
    const result = await work(lock)
    lock.assertHeld()
    // A process that lost the lock may still store its result first. Then all callers get that one.
    const first = await writeRecord(client, done, result, keep)
    if (first !== undefined) return { ran: true, ...doneOf<Result>(first) }
    const at = client.clock.now()
    return { ran: true, result, by: client.holder, at, until: at + keep }
  })
}

/** What was done under this name; `undefined` if it was not done, or is forgotten. */
export async function onceResult<Result>(
  client: Client,
  name: string,
  options?: CallOptions,
): Promise<Done<Result> | undefined> {
  const limited = client.limitedTo(timeoutIn('onceResult', options))
  const record = await readRecord(limited, keysOf(name).done)
  return record && doneOf<Result>(record)
}

/** The key of the lock under which the work of this name runs. */
export function onceKey(name: string): Key {
  return keysOf(name).run
}

/**
 * Stores the result of work that ran elsewhere, under the lock of `onceKey` with this token: for
 * clients of a server in other languages. Returns what is stored: an earlier result, if there is one.
 * `undefined` if there is none and the lock is no longer held: then the next caller runs it.
 */
export async function finishOnce<Result>(
  client: Client,
  name: string,
  token: Token,
  result: Result,
  options: Pick<OnceOptions, 'keep'> = {},
): Promise<OnceDone<Result> | undefined> {
  const { run, done } = keysOf(name)
  const keep = keepOf(client, optionsOf('finishOnce', options, KEEP_OPTION).keep)
  const { claims, holders } = await client.store.read({ key: run })
  const isHeld = claims.slice(0, holders).some((claim) => claim.token === token)
  if (isHeld) await writeRecord(client, done, result, keep)
  const record = await readRecord(client, done)
  return record && { ran: isHeld, ...doneOf<Result>(record) }
}

/** Forgets what was done under this name, so that it can be run again. Returns whether it was done. */
export async function forgetOnce(
  client: Client,
  name: string,
  options?: CallOptions,
): Promise<boolean> {
  const limited = client.limitedTo(timeoutIn('forgetOnce', options))
  return removeRecord(limited, keysOf(name).done, 'forgotten, so that it can be run again')
}

function keysOf(name: string): { readonly run: Key; readonly done: Key } {
  stringOf('the name', name, NAME_LENGTH_MAX)
  return { run: `once/run/${name}`, done: `once/done/${name}` }
}

function doneOf<Result>({ json, by, at, until }: DoneRecord): Done<Result> {
  return { result: (json === undefined ? undefined : JSON.parse(json)) as Result, by, at, until }
}
