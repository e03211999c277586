import { Grantor } from '../../grantor/index.ts'
import {
  type Clock,
  DEFAULT_LIMITS,
  type Guarantees,
  LeaseholdError,
  type LeaseStore,
  type Limits,
  type Random,
  show,
  systemClock,
  systemRandom,
  type Token,
} from '../../port/index.ts'
import { Compactor } from './compactor.ts'
import { type Disk, isFull, type Lock } from './disk.ts'
import { FileDurability } from './file-durability.ts'
import { LogWriter } from './log-writer.ts'
import { nodeDisk } from './node-disk.ts'
import { type Recovered, recover } from './recovery.ts'
import { checkSegmentBytes, segmentName } from './segment.ts'
import { SegmentSupply } from './segment-supply.ts'

export interface FileStoreOptions {
  readonly limits?: Partial<Limits> | undefined
  readonly clock?: Clock | undefined
  readonly random?: Random | undefined
  /** The size of a file of the log, in bytes; 16 MiB if not given. Two of them are always there. */
  readonly segmentBytes?: number | undefined
  /**
   * A snapshot is written when the log has grown by this many bytes since the last one, or by twice
   * that one's size, whichever is more; 64 MiB if not given.
   */
  readonly snapshotBytes?: number | undefined
  /**
   * Tokens go on above this number, if they are not there yet: for a folder that was restored from a
   * copy, which does not know of the tokens that were given after the copy. It is durable when the
   * store is open, and need not be given again.
   */
  readonly tokensAbove?: Token | undefined
  /** The disk to use instead of the folder: for tests. */
  readonly disk?: Disk | undefined
}

const SEGMENT_BYTES = 16 << 20
const SNAPSHOT_BYTES = 64 << 20

/**
 * A store in a folder, which is made if it is not there. What it answers is durable: it survives a
 * crash of the process and of the machine. One process at a time owns the folder; another that
 * opens it is refused with `storage-locked`. Files that are not what was written are refused with
 * `storage-damaged`.
 *
 * Renewals are not written. Instead, opening the store gives every lease its full ttl, and the end
 * of a lease's life is put off by the time for which the store was closed.
 */
export async function fileStore(
  folder: string,
  options: FileStoreOptions = {},
): Promise<LeaseStore> {
  const { clock = systemClock, random = systemRandom } = options
  const { segmentBytes = SEGMENT_BYTES } = options
  checkSegmentBytes(segmentBytes)
  checkSnapshotBytes(options.snapshotBytes)
  checkTokensAbove(options.tokensAbove)
  const disk = options.disk ?? (await nodeDisk(folder, clock, random))
  let lock: Lock | undefined
  try {
    lock = await disk.lock()
    return await open(disk, lock, { ...options, clock, random, segmentBytes })
  } catch (error) {
    await lock?.release().catch(() => {})
    throw explained(disk.folder, error)
  }
}

/** What the disk says, as one of our own errors. */
function explained(folder: string, error: unknown): LeaseholdError {
  if (error instanceof LeaseholdError) return error
  const what = error instanceof Error ? error.message : String(error)
  const code = isFull(error) ? 'storage-full' : 'storage-failed'
  return new LeaseholdError(
    code,
    `${folder} could not be opened (${what}): see to the disk and open it again; nothing in it was lost by this`,
    { cause: error },
  )
}

function checkSnapshotBytes(bytes: number | undefined): void {
  if (bytes === undefined || (typeof bytes === 'number' && bytes >= 0)) return
  throw new LeaseholdError(
    'invalid-argument',
    `snapshotBytes is ${bytes}: it must be a number of bytes from 0 on`,
  )
}

function checkTokensAbove(token: Token | undefined): void {
  if (token === undefined || (Number.isSafeInteger(token) && token >= 0)) return
  throw new LeaseholdError(
    'invalid-argument',
    `tokensAbove is ${show(token)}: it must be an integer from 0 to ${Number.MAX_SAFE_INTEGER}`,
  )
}

interface OpenOptions extends FileStoreOptions {
  readonly clock: Clock
  readonly random: Random
  readonly segmentBytes: number
}

async function open(disk: Disk, lock: Lock, options: OpenOptions): Promise<LeaseStore> {
  const { clock, random, segmentBytes, limits, snapshotBytes = SNAPSHOT_BYTES } = options
  const { tokensAbove = 0 } = options
  const durability = new FileDurability(clock)
  let grantor!: Grantor
  const { kernel, recovered } = await recover(disk, random, segmentBytes, (revision) => {
    const guarantees = fileGuarantees({ ...DEFAULT_LIMITS, ...limits })
    grantor = new Grantor({ clock, guarantees, limits, revision, durability })
    return grantor.kernel
  })
  const { storeId, end, lastSegment, lastTime } = recovered
  const file = await disk.open(segmentName(end.position.segment))
  const supply = new SegmentSupply(disk, clock, storeId, segmentBytes, lastSegment)
  const log = new LogWriter(disk, supply, storeId, file, await file.size(), end.position)
  // Not before there is nothing left to wait for: from now on a lease can be renewed, so from now
  // on its full ttl counts.
  const now = clock.now()
  const shift = lastTime === -Infinity ? 0 : now - lastTime
  kernel.settle(now, now - shift)
  const last = lastOf(recovered)
  const compactor = new Compactor(disk, clock, kernel, log, supply, durability, last, {
    storeId,
    shift,
    snapshotBytes,
  })
  durability.journal.mortal = last.logBytes + last.bytes > 0
  durability.start({
    log,
    supply,
    shift,
    onCommit: () => compactor.consider(),
    letGo: async () => {
      await Promise.all([compactor.close(), supply.close()])
      await log.close().finally(() => lock.release())
    },
  })
  if (tokensAbove > kernel.revision) await raiseTokens(grantor, compactor, tokensAbove)
  grantor.start()
  compactor.consider()
  return grantor
}

/** The log tells revisions only with what happened in them; a snapshot tells its own. */
async function raiseTokens(grantor: Grantor, compactor: Compactor, above: Token): Promise<void> {
  grantor.kernel.raise(above)
  try {
    await compactor.take()
  } catch (error) {
    await grantor.close().catch(() => {})
    throw error
  }
}

function lastOf({ snapshot, end }: Recovered) {
  return {
    number: snapshot?.number ?? 0,
    bytes: snapshot?.bytes ?? 0,
    segment: snapshot?.start.segment ?? 1,
    logBytes: end.bytes,
  }
}

function fileGuarantees(limits: Limits): Guarantees {
  return {
    engine: 'file',
    inProcess: true,
    durability: 'disk',
    tokensSurvive: 'restart',
    ttl: { min: limits.ttlMin, max: limits.ttlMax, step: 0 },
    expiryLateness: 10,
    childLeases: true,
    requestsRemembered: limits.requests,
    eventsKept: limits.events,
    notes: [
      'An answer is given when it is on the disk, if the disk keeps what it says it has kept.',
      'Opening the store gives every lease its full ttl again.',
      'After a crash a lease with a maximum life may live up to 30 seconds longer.',
      'A folder that is restored from a copy repeats the tokens that were given after the copy, unless it is opened with tokensAbove, as leasehold restore does.',
      'One process owns the folder at a time. Do not share it between machines over a network.',
    ],
  }
}
