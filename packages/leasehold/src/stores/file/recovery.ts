import type { Journal } from '../../kernel/index.ts'
import type { Random, Revision } from '../../port/index.ts'
import { damaged } from './damage.ts'
import type { Disk } from './disk.ts'
import { LOG_BEGIN, type LogEnd, LogReader, wipe } from './log-reader.ts'
import { decodeRecords } from './records.ts'
import {
  isTemporary,
  prepareSegment,
  segmentName,
  segmentNumbers,
  snapshotName,
  snapshotNumbers,
} from './segment.ts'
import { readSnapshot, readSnapshotInfo, type SnapshotInfo, Stamps } from './snapshot-reader.ts'

/** What recovery asks of a kernel. */
export interface Recovering {
  replay(): Journal
  startEvents(revision: Revision): void
}

export interface Recovered {
  readonly storeId: string
  readonly end: LogEnd
  readonly snapshot: SnapshotInfo | undefined
  /** The number of the last segment, which may not be in use yet. */
  readonly lastSegment: number
  /** The last time that the log knows of; -Infinity where it knows none. */
  readonly lastTime: number
}

/**
 * Rebuilds a kernel from the folder: the newest snapshot, then the log from where it began. The
 * kernel has yet to be settled.
 * `makeKernel` is called once, with the revision to start after.
 */
export async function recover<K extends Recovering>(
  disk: Disk,
  random: Random,
  segmentBytes: number,
  makeKernel: (revision: Revision) => K,
): Promise<{ kernel: K; recovered: Recovered }> {
  let names = await disk.list()
  if (segmentNumbers(names).length === 0 && snapshotNumbers(names).length === 0) {
    await prepareSegment(disk, { storeId: random.id(), number: 1, bytes: segmentBytes })
    names = await disk.list()
  }
  const newest = snapshotNumbers(names).at(-1)
  const snapshot = newest === undefined ? undefined : await readSnapshotInfo(disk, newest)
  const kernel = makeKernel(snapshot?.stamp ?? 0)
  const journal = kernel.replay()
  const stamps = snapshot ? await readSnapshot(disk, snapshot, journal) : new Stamps()
  kernel.startEvents(snapshot?.stamp ?? 0)

  const segments = segmentNumbers(names)
  const end = await readLog(disk, segments, snapshot, journal, stamps)
  await wipe(disk, end.remains)
  for (const name of names) if (isTemporary(name)) await disk.remove(name)
  await removeOutdated(disk, names, snapshot)

  const lastTime = Math.max(end.time ?? -Infinity, snapshot?.time ?? -Infinity)
  const lastSegment = segments.at(-1)!
  return { kernel, recovered: { storeId: end.storeId, end, snapshot, lastSegment, lastTime } }
}

async function readLog(
  disk: Disk,
  segments: readonly number[],
  snapshot: SnapshotInfo | undefined,
  journal: Journal,
  stamps: Stamps,
): Promise<LogEnd> {
  const wants = snapshot
    ? (revision: Revision, slot: number) => revision > stamps.of(slot)
    : () => true
  const reader = new LogReader(disk, segments, snapshot?.storeId, (payload) => {
    decodeRecords(payload, journal, wants)
  })
  const end = await reader.read(snapshot?.start ?? LOG_BEGIN)
  if (snapshot && end.position.sequence < snapshot.logged) {
    throw damaged(
      segmentName(end.position.segment),
      end.position.offset,
      `the log ends with frame ${end.position.sequence - 1}, but ${snapshotName(snapshot.number)} was taken after frame ${snapshot.logged - 1}`,
    )
  }
  return end
}

/** Removes what a snapshot has made superfluous. Its order does not matter: none of it is read. */
export async function removeOutdated(
  disk: Disk,
  names: readonly string[],
  snapshot: Pick<SnapshotInfo, 'number' | 'start'> | undefined,
): Promise<void> {
  if (!snapshot) return
  for (const number of snapshotNumbers(names)) {
    if (number < snapshot.number) await disk.remove(snapshotName(number))
  }
  for (const number of segmentNumbers(names)) {
    if (number < snapshot.start.segment) await disk.remove(segmentName(number))
  }
}
