import {
  type Clock,
  checkNames,
  DEFAULT_LIMITS,
  type Guarantees,
  knownNames,
  LeaseholdError,
  type LeaseStore,
  type Limits,
  type Random,
  type Revision,
  show,
  systemClock,
  systemRandom,
  type Token,
} from '../../port/index.ts'
import { KernelRunner } from '../../runner/index.ts'
import { beginCheckpoints } from './checkpoints.ts'
import { type Disk, isFull, type Lock } from './disk/disk.ts'
import { nodeDisk } from './disk/node-disk.ts'
import { FileDurability } from './file-durability.ts'
import { LogWriter } from './log/log-writer.ts'
import { checkSegmentBytes, segmentName, segmentNumbers } from './log/segment.ts'
import { SegmentSupply } from './log/segment-supply.ts'
import { type Recovered, recover } from './recovery.ts'
import { Compactor } from './snapshot/compactor.ts'

export interface FileStoreOptions {
  readonly limits?: Partial<Limits> | undefined
  readonly clock?: Clock | undefined
  readonly random?: Random | undefined
  /** The size of one log file in bytes; 16 MiB if not given. The store always keeps two of them. */
  readonly segmentBytes?: number | undefined
  /**
   * The store writes a snapshot when the log has grown by this many bytes since the last one, or by
   * twice the size of the last one, whichever is more; 64 MiB if not given.
   */
  readonly snapshotBytes?: number | undefined
  /**
   * New tokens are above this number. Use it for a folder that was restored from a backup, because
   * a backup does not know the tokens that were given after it. The store remembers it: give it
   * once.
   */
  readonly tokensAbove?: Token | undefined
  /** Replaces the folder, for tests. */
  readonly disk?: Disk | undefined
}

const FILE_STORE_OPTIONS = knownNames<FileStoreOptions>({
  limits: true,
  clock: true,
  random: true,
  segmentBytes: true,
  snapshotBytes: true,
  tokensAbove: true,
  disk: true,
})

const SEGMENT_BYTES = 16 << 20
const SNAPSHOT_BYTES = 64 << 20

/**
 * A store in a folder, which is created if it does not exist. Its answers are durable: they survive
 * a crash of the process and of the machine. One process at a time owns the folder; another process
 * that opens it gets `storage-locked`. Files that differ from what was written are refused with
 * `storage-damaged`.
 *
 * Renewals are not written. Instead, opening the store gives every lease its full ttl again, and
 * extends the maximum life of a lease by the time for which the store was closed.
 */
export function fileStore(folder: string, options: FileStoreOptions = {}): Promise<LeaseStore> {
  return openFolder(folder, options, false)
}

/** Opens a folder that `copyFolder` has just made. */
export function openCopy(folder: string): Promise<LeaseStore> {
  return openFolder(folder, {}, true)
}

async function openFolder(
  folder: string,
  options: FileStoreOptions,
  isCopy: boolean,
): Promise<LeaseStore> {
  checkNames('fileStore', options, FILE_STORE_OPTIONS)
  const { clock = systemClock, random = systemRandom } = options
  const { segmentBytes = SEGMENT_BYTES } = options
  checkSegmentBytes(segmentBytes)
  checkSnapshotBytes(options.snapshotBytes)
  checkTokensAbove(options.tokensAbove)
  const disk = options.disk ?? (await nodeDisk(folder, clock, random))
  let lock: Lock | undefined
  try {
    lock = await disk.lock()
    return await open(disk, lock, { ...options, clock, random, segmentBytes, isCopy })
  } catch (error) {
    await lock?.release().catch(() => {})
    throw openError(disk.folder, error)
  }
}

/** Turns an error of the disk into one of ours. */
function openError(folder: string, error: unknown): LeaseholdError {
  if (error instanceof LeaseholdError) return error
  const what = error instanceof Error ? error.message : String(error)
  const code = isFull(error) ? 'storage-full' : 'storage-failed'
  return new LeaseholdError(
    code,
    `${folder} could not be opened (${what}). Nothing in it was lost. Fix the disk and open the store again`,
    { cause: error },
  )
}

function checkSnapshotBytes(bytes: number | undefined): void {
  if (bytes === undefined || (typeof bytes === 'number' && bytes >= 0)) return
  throw new LeaseholdError(
    'invalid-argument',
    `snapshotBytes is ${bytes}: it must be a number of bytes, 0 or more`,
  )
}

/** Leaves 2 ** 40 tokens for the life of the store, because tokens are safe integers. */
const TOKENS_ABOVE_MAX = Number.MAX_SAFE_INTEGER - 2 ** 40

function checkTokensAbove(token: Token | undefined): void {
  if (token === undefined) return
  if (Number.isSafeInteger(token) && token >= 0 && token <= TOKENS_ABOVE_MAX) return
  throw new LeaseholdError(
    'invalid-argument',
    `tokensAbove is ${show(token)}: it must be an integer from 0 to ${TOKENS_ABOVE_MAX}`,
  )
}

interface OpenOptions extends FileStoreOptions {
  /** The folder is a fresh copy of a store that may be in use: the copy ends where its log ends. */
  readonly isCopy: boolean
  readonly clock: Clock
  readonly random: Random
  readonly segmentBytes: number
}

async function open(disk: Disk, lock: Lock, options: OpenOptions): Promise<LeaseStore> {
  const { clock, random, segmentBytes, limits, snapshotBytes = SNAPSHOT_BYTES } = options
  const durability = new FileDurability(clock)
  let runner!: KernelRunner
  const { kernel, recovered } = await recover(disk, random, segmentBytes, (revision) => {
    const guarantees = fileGuarantees({ ...DEFAULT_LIMITS, ...limits })
    runner = new KernelRunner({ clock, guarantees, limits, revision, durability })
    return runner.kernel
  })
  const { storeId, lastTime } = recovered
  const revision = nextRevision(kernel.revision, recovered, options)
  const checkpoints = await beginCheckpoints(disk, clock, recovered, revision, segmentBytes)
  const { supply, log } = await openLog(disk, clock, recovered, segmentBytes).catch(
    async (error: unknown) => {
      await checkpoints.close(undefined)
      throw error
    },
  )
  // The full ttl of a lease counts from now on, because only from now on can the lease be renewed.
  const now = clock.now()
  const shift = lastTime === -Infinity ? 0 : now - lastTime
  kernel.finishReplay(now, now - shift)
  kernel.skipTo(revision)
  const last = lastOf(recovered)
  const compactor = new Compactor(disk, clock, kernel, log, supply, durability, checkpoints, last, {
    storeId,
    shift,
    snapshotBytes,
  })
  durability.changeSink.hasFiniteLives = last.logBytes + last.bytes > 0
  durability.start({
    log,
    supply,
    checkpoints,
    revision: () => kernel.revision,
    shift,
    onCommit: () => compactor.consider(),
    closeFiles: async (isComplete) => {
      try {
        await Promise.all([compactor.close(), supply.close()])
        await log.close()
        const { revision } = kernel
        await checkpoints.close(isComplete ? { end: log.position, revision } : undefined)
      } finally {
        await lock.release()
      }
    },
  })
  runner.start()
  compactor.consider()
  return runner
}

/** Opens the log for writing, at its end. */
async function openLog(disk: Disk, clock: Clock, recovered: Recovered, segmentBytes: number) {
  const { storeId, end } = recovered
  const lastSegment = segmentNumbers(await disk.list()).at(-1)!
  const file = await disk.open(segmentName(end.position.segment))
  const bytes = await file.size()
  const supply = new SegmentSupply(disk, clock, storeId, segmentBytes, lastSegment)
  return { supply, log: new LogWriter(disk, supply, storeId, file, bytes, end.position) }
}

/**
 * The revision to continue from. After a crash it is above every revision that can have been given.
 * So no token is given twice, even if the end of the log was lost without a trace.
 */
function nextRevision(found: Revision, { opened }: Recovered, options: OpenOptions): Revision {
  const { tokensAbove = 0, isCopy } = options
  const manifest = opened?.manifest
  const crashed = manifest?.state === 'open' && !isCopy
  const known = crashed ? manifest.ceiling + 1 : (manifest?.revision ?? 0)
  return Math.max(found, known, tokensAbove)
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
      'The store answers when the change is on the disk, provided that the disk keeps what it confirms.',
      'Opening the store gives every lease its full ttl again.',
      'After a crash a lease with a maximum life may live up to 30 seconds longer.',
      'After a crash tokens skip up to 65,537 numbers.',
      'After a crash the store cannot notice the loss of what was written in the last second before it; tokens do not repeat.',
      'A folder that is restored from a backup repeats the tokens that were given after the backup, unless it is opened with tokensAbove, as leasehold restore does.',
      'One process owns the folder at a time. Do not share it between machines over a network.',
    ],
  }
}
