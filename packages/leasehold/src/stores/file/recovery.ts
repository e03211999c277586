import { decodeRecords } from '../../encoding/index.ts'
import type { ChangeSink, Replay } from '../../kernel/index.ts'
import type { Random, Revision } from '../../port/index.ts'
import { contradictory, damaged, missing } from './damage.ts'
import type { Disk } from './disk/disk.ts'
import { LOG_BEGIN, type LogEnd, LogReader, wipe } from './log/log-reader.ts'
import {
  FORMAT_WITH_MANIFEST,
  isTemporary,
  MANIFEST,
  prepareSegment,
  readSegmentInfo,
  segmentName,
  segmentNumbers,
  snapshotName,
  snapshotNumbers,
} from './log/segment.ts'
import { type Manifest, ManifestFile } from './manifest.ts'
import {
  readSnapshot,
  readSnapshotInfo,
  type SnapshotInfo,
  Stamps,
} from './snapshot/snapshot-reader.ts'

/** What recovery needs of a kernel. */
export interface Recovering {
  replay(): Replay
  startEvents(revision: Revision): void
}

export interface Recovered {
  readonly storeId: string
  readonly end: LogEnd
  readonly snapshot: SnapshotInfo | undefined
  /** The last time in the log; -Infinity if there is none. */
  readonly lastTime: number
  /** `undefined` if a version without manifests wrote the folder. */
  readonly opened: OpenedManifest | undefined
}

export interface OpenedManifest {
  readonly file: ManifestFile
  readonly manifest: Manifest
}

/**
 * Rebuilds a kernel from the folder: from the newest snapshot, then from the log since its start.
 * The caller must finish the replay. Refuses a folder that lacks what the manifest names.
 * `makeKernel` is called once, with the revision to start after.
 */
export async function recover<K extends Recovering>(
  disk: Disk,
  random: Random,
  segmentBytes: number,
  makeKernel: (revision: Revision) => K,
): Promise<{ kernel: K; recovered: Recovered }> {
  let names = await disk.list()
  const opened = await openManifest(disk, names, random)
  try {
    const manifest = opened?.manifest
    if (manifest?.state === 'new' && segmentNumbers(names).length === 0) {
      await prepareSegment(disk, { storeId: manifest.storeId, number: 1, bytes: segmentBytes })
      names = await disk.list()
    }
    const snapshot = await findSnapshot(disk, names, manifest)
    const kernel = makeKernel(snapshot?.stamp ?? 0)
    const replay = kernel.replay()
    const stamps = snapshot ? await readSnapshot(disk, snapshot, replay) : new Stamps()
    kernel.startEvents(snapshot?.stamp ?? 0)

    const segments = segmentNumbers(names)
    const storeId = manifest?.storeId ?? snapshot?.storeId
    const end = await readLog(disk, segments, storeId, snapshot, replay, stamps)
    if (manifest) checkEnd(end, manifest)
    checkReplay(replay, end)
    await wipe(disk, end.remains)
    await makeDurable(disk, segments)
    for (const name of names) if (isTemporary(name)) await disk.remove(name)

    const lastTime = Math.max(end.time ?? -Infinity, snapshot?.time ?? -Infinity)
    return { kernel, recovered: { storeId: end.storeId, end, snapshot, lastTime, opened } }
  } catch (error) {
    await opened?.file.close().catch(() => {})
    throw error
  }
}

async function openManifest(
  disk: Disk,
  names: readonly string[],
  random: Random,
): Promise<OpenedManifest | undefined> {
  if (names.includes(MANIFEST)) return ManifestFile.open(disk)
  const [segments, snapshots] = [segmentNumbers(names), snapshotNumbers(names)]
  if (segments.length > 0 || snapshots.length > 0) {
    for (const number of segments) await checkNeedsNoManifest(disk, number)
    for (const number of snapshots) {
      refuseWithoutManifest(snapshotName(number), (await readSnapshotInfo(disk, number)).format)
    }
    return undefined
  }
  const manifest: Manifest = {
    storeId: random.id(),
    state: 'new',
    snapshot: 0,
    end: LOG_BEGIN,
    revision: 0,
    ceiling: 0,
  }
  return { file: await ManifestFile.create(disk, manifest), manifest }
}

async function checkNeedsNoManifest(disk: Disk, number: number): Promise<void> {
  const file = await disk.open(segmentName(number))
  try {
    const { format } = await readSegmentInfo(file, number, undefined)
    refuseWithoutManifest(segmentName(number), format)
  } finally {
    await file.close()
  }
}

function refuseWithoutManifest(name: string, format: number): void {
  if (format < FORMAT_WITH_MANIFEST) return
  throw missing(MANIFEST, `${name} belongs to a store that has one`)
}

/** The newest snapshot; refused if the manifest names a newer one. */
async function findSnapshot(
  disk: Disk,
  names: readonly string[],
  manifest: Manifest | undefined,
): Promise<SnapshotInfo | undefined> {
  const newest = snapshotNumbers(names).at(-1) ?? 0
  if (manifest && newest < manifest.snapshot) {
    throw missing(snapshotName(manifest.snapshot), `the log before it was removed`)
  }
  if (newest === 0) return undefined
  const snapshot = await readSnapshotInfo(disk, newest)
  if (manifest && snapshot.storeId !== manifest.storeId) {
    const { storeId } = snapshot
    throw damaged(
      snapshotName(newest),
      0,
      `it belongs to the store ${storeId} and not to ${manifest.storeId}`,
    )
  }
  return snapshot
}

async function readLog(
  disk: Disk,
  segments: readonly number[],
  storeId: string | undefined,
  snapshot: SnapshotInfo | undefined,
  replay: ChangeSink,
  stamps: Stamps,
): Promise<LogEnd> {
  const wants = snapshot
    ? (revision: Revision, slot: number) => revision > stamps.of(slot)
    : () => true
  const reader = new LogReader(disk, segments, storeId, (payload) => {
    decodeRecords(payload, replay, wants)
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

/** The log must reach the durable end in the manifest, and end there if the store was closed. */
function checkEnd({ position, remains }: LogEnd, { state, end }: Manifest): void {
  const name = segmentName(position.segment)
  const last = position.sequence - 1
  if (position.sequence < end.sequence) {
    throw damaged(
      name,
      position.offset,
      `the log ends with frame ${last}, but it was written up to frame ${end.sequence - 1}`,
    )
  }
  if (state === 'open') return
  if (position.sequence > end.sequence || remains.length > 0) {
    throw damaged(
      name,
      position.offset,
      `the log continues after frame ${end.sequence - 1}, with which the store was closed: ${MANIFEST} is an older copy`,
    )
  }
}

/**
 * The last writes of a dead process may be readable but not durable: the end of the log, and the
 * name of a snapshot. Answers and the manifest depend on them from now on, so make them durable.
 */
async function makeDurable(disk: Disk, segments: readonly number[]): Promise<void> {
  for (const number of segments) {
    const file = await disk.open(segmentName(number))
    try {
      await file.sync()
    } finally {
      await file.close()
    }
  }
  await disk.sync()
}

/** Refuses contents that no store can have written. */
function checkReplay(replay: Replay, { position }: LogEnd): void {
  try {
    replay.check()
  } catch (error) {
    throw contradictory(segmentName(position.segment), position.offset, error)
  }
}

/** Removes the files that a snapshot replaces. The order does not matter: none of them is read. */
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
