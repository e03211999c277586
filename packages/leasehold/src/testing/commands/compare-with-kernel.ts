import assert from 'node:assert/strict'
import { type LeaseStore, type Limits, type Random, systemRandom } from '../../port/index.ts'
import { WatchRecorder } from '../conformance/watches/watch-recorder.ts'
import type { Command, Turn } from './command.ts'
import { LeaseWatches } from './lease-watches.ts'
import { normalizeEvents } from './normalize.ts'
import { KernelSide, type OpenedStores, StoreSide } from './sides.ts'

/** If time cannot be moved, everything lives longer than any comparison takes. */
const LONG_MS = 3_600_000

/**
 * Before these, all required notices must have arrived. That a claim held need not be reported once it
 * is gone; and a renewal may be answered by what the watch of the lease has received.
 */
const AFTER_NEWS: readonly Command['do'][] = ['release', 'revoke', 'renew']

export interface CompareOptions {
  /** The limits that the store was opened with, if they are not the defaults. */
  readonly limits?: Partial<Limits> | undefined
  /**
   * A watch on a lease need not report that a claim holds that was made through another store after the
   * watch had begun: for a store that says so, or that reports it too late to wait for.
   */
  readonly ownClaimsOnly?: boolean | undefined
  /**
   * No two deadlines are equal. If two leases are due at one moment, every store may choose which ends
   * first, and the kernel has chosen.
   */
  readonly ownDeadlines?: boolean | undefined
  readonly random?: Random | undefined
}

/**
 * Gives the same commands to a store and to a kernel, at the same times, and fails if they differ: in
 * an answer, in what can be read at the end, or in the events of a watch. If the store's clock
 * cannot be moved, nothing expires and times are not compared. If it has no child leases, none are
 * requested.
 *
 * If several stores are open on the same data, turns say which of them gets a command, and which
 * watches a lease: they must behave as one.
 */
export async function compareWithKernel(
  open: () => Promise<OpenedStores>,
  commands: readonly (Command | Turn)[],
  options: CompareOptions = {},
): Promise<void> {
  const opened = await open()
  const prefix = `commands/${(options.random ?? systemRandom).id()}/`
  const store = new StoreSide(opened, prefix)
  try {
    const recorders = store.stores.map((each) => new WatchRecorder(each, { prefix }))
    for (const recorder of recorders) await recorder.next('watching')
    const kernel = new KernelSide(prefix, store.exact, await now(opened.store), options.limits)
    const watches = new LeaseWatches(store, kernel, options.ownClaimsOnly ?? false)
    for (const [at, turn] of commands.entries()) {
      if (turn.do === 'watch') await watches.begin(turn.store, turn.lease)
      else {
        const { command, store: through } = turn.do === 'turn' ? turn : { command: turn, store: 0 }
        if (AFTER_NEWS.includes(command.do)) await watches.settle()
        const own = options.ownDeadlines ? withOwnDeadline(command, at) : command
        await compareAnswers(at, own, through, store, kernel)
      }
    }
    await compareReadings(store, kernel)
    await watches.compare()
    await compareEvents(recorders, store, kernel)
    watches.close()
    for (const recorder of recorders) recorder.close()
  } finally {
    for (const each of store.stores) await each.close()
    await opened.close?.()
  }
}

async function compareAnswers(
  at: number,
  command: Command,
  through: number,
  store: StoreSide,
  kernel: KernelSide,
): Promise<void> {
  if (!store.exact && command.do === 'pass') return
  const timed = store.exact ? command : withoutTime(command)
  const step = store.stores[0]!.guarantees.childLeases ? timed : withoutParent(timed)
  const [answer, expected] = [await store.run(step, through), kernel.run(step)]
  assert.deepEqual(answer, expected, `command ${at} was answered otherwise by the kernel`)
}

async function compareReadings(store: StoreSide, kernel: KernelSide): Promise<void> {
  const expected = await kernel.everything()
  for (const through of store.stores.keys()) {
    const read = await store.everythingThrough(through)
    assert.deepEqual(read, expected, `the readings through store ${through} differ`)
  }
}

/** The time on the store's clock, as a lease shows it. */
async function now(store: LeaseStore): Promise<number> {
  const granted = await store.grant({ holder: 'clock', ttl: Infinity })
  assert.equal(granted.outcome, 'granted')
  const { lease } = granted as { lease: string }
  const { grantedAt } = (await store.read({ lease })).lease!
  await store.revoke({ target: { lease } })
  return grantedAt
}

async function compareEvents(
  recorders: readonly WatchRecorder[],
  store: StoreSide,
  kernel: KernelSide,
): Promise<void> {
  const last = { do: 'grant', holder: 'last', ttl: LONG_MS, claims: [{ key: 'last' }] } as const
  await store.run(last)
  kernel.run(last)
  const expected = normalizeEvents(kernel.events(), kernel.names, store.exact)
  for (const [through, recorder] of recorders.entries()) {
    const events = await recorder.eventsUntil(
      ({ holder, type }) => holder === 'last' && type === 'held',
    )
    const reported = normalizeEvents(events, store.names, store.exact)
    assert.deepEqual(reported, expected, `the events through store ${through} differ`)
  }
}

/** The same command, with times that no other command has. */
export function withOwnDeadline(command: Command, at: number): Command {
  const own = (at + 1) / 256
  if (command.do === 'grant') {
    const { ttl, maxLife } = command
    const life = maxLife === undefined ? {} : { maxLife: maxLife + own + 1 / 1024 }
    return { ...command, ttl: ttl + own, ...life }
  }
  if (command.do !== 'revoke' || !command.after) return command
  return { ...command, after: command.after + own + 1 / 2048 }
}

/** The same command, but so that nothing ends by time. */
export function withoutTime(command: Command): Command {
  if (command.do === 'grant') {
    const { grace: _, maxLife: __, ...rest } = command
    return { ...rest, ttl: LONG_MS }
  }
  if (command.do === 'revoke') {
    return { ...command, ...(command.after ? { after: LONG_MS / 2 } : {}) }
  }
  return command
}

/** The same command for a store without child leases: what it refuses is not compared. */
function withoutParent(command: Command): Command {
  if (command.do !== 'grant') return command
  const { parent: _, ...rest } = command
  return rest
}
