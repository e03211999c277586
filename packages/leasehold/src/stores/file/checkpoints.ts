import type { Clock, Revision, Timer } from '../../port/index.ts'
import { type Disk, isFull } from './disk/disk.ts'
import type { LogPosition } from './log/log-writer.ts'
import { prepareSegment, segmentName, segmentNumbers } from './log/segment.ts'
import { type Manifest, ManifestFile } from './manifest.ts'
import { type Recovered, removeOutdated } from './recovery.ts'

/** The manifest covers everything that is older than this, if the disk is fast enough. */
const EVERY_MS = 1000
/**
 * How many revisions are reserved ahead. After a crash the store skips the unused ones. So this
 * must be small enough that restarts cannot overtake `epochOf` of the server, which counts 2048 per
 * millisecond: no process can crash and start again every 32 ms for long.
 */
export const RESERVED = 65_536

/**
 * Updates the manifest while a store is open: how far the log is durable, which snapshot exists,
 * and which revisions may have been given. The manifest is written beside the commits. A commit
 * waits for it only if all reserved revisions are used.
 */
export class Checkpoints {
  readonly #file: ManifestFile
  readonly #clock: Clock
  /** The manifest that is durable in the file. */
  #manifest: Manifest
  #snapshot: number
  #end: LogPosition
  #revision: Revision
  #writing: Promise<void> | undefined
  #timer: Timer | undefined
  #closed = false

  constructor(file: ManifestFile, clock: Clock, manifest: Manifest) {
    this.#file = file
    this.#clock = clock
    this.#manifest = manifest
    this.#snapshot = manifest.snapshot
    this.#end = manifest.end
    this.#revision = manifest.revision
  }

  /** Fulfilled when revisions up to this one may be given; rejected if the write fails. */
  async reserve(revision: Revision): Promise<void> {
    while (this.#manifest.ceiling < revision) {
      this.#revision = Math.max(this.#revision, revision)
      await this.#write()
    }
  }

  /** The log is durable up to `end` and contains every change up to `revision`. */
  committed(end: LogPosition, revision: Revision): void {
    this.#end = end
    this.#revision = Math.max(this.#revision, revision)
    const isLow = this.#manifest.ceiling - revision < RESERVED / 2
    if (isLow || end.segment > this.#manifest.end.segment) this.#writeSoon()
    else if (end.sequence > this.#manifest.end.sequence) this.#arm()
  }

  /** Fulfilled when the manifest names this snapshot. After that, older files may be removed. */
  async snapshotTaken(number: number): Promise<void> {
    this.#snapshot = number
    while (this.#manifest.snapshot < number) await this.#write()
  }

  /** `last` is the end of the log, if everything was written. */
  async close(last: { readonly end: LogPosition; readonly revision: Revision } | undefined) {
    this.#closed = true
    this.#timer?.cancel()
    await this.#writing?.catch(() => {})
    try {
      if (!last) return
      const { storeId } = this.#manifest
      const { end, revision } = last
      const snapshot = this.#snapshot
      await this.#file.write({
        storeId,
        state: 'closed',
        snapshot,
        end,
        revision,
        ceiling: revision,
      })
    } finally {
      await this.#file.close()
    }
  }

  #arm(): void {
    if (this.#closed) return
    this.#timer ??= this.#clock.timer(this.#clock.now() + EVERY_MS, () => {
      this.#timer = undefined
      this.#writeSoon()
    })
  }

  /** Ignores failures: the previous manifest stays valid, and the next commit tries again. */
  #writeSoon(): void {
    if (!this.#closed) this.#write().catch(() => this.#arm())
  }

  /** Writes the current values. Joins a write in progress, which may have older values. */
  #write(): Promise<void> {
    this.#writing ??= this.#writeNow().finally(() => {
      this.#writing = undefined
    })
    return this.#writing
  }

  async #writeNow(): Promise<void> {
    const manifest: Manifest = {
      storeId: this.#manifest.storeId,
      state: 'open',
      snapshot: this.#snapshot,
      end: this.#end,
      revision: this.#revision,
      ceiling: Math.max(this.#manifest.ceiling, this.#revision + RESERVED),
    }
    await this.#file.write(manifest)
    this.#manifest = manifest
    if (this.#end.sequence > manifest.end.sequence) this.#arm()
  }
}

/**
 * Marks the store as open from this revision in the manifest. Only then removes the files that the
 * newest snapshot replaces.
 */
export async function beginCheckpoints(
  disk: Disk,
  clock: Clock,
  recovered: Recovered,
  revision: Revision,
  segmentBytes: number,
): Promise<Checkpoints> {
  const { storeId, snapshot, end, opened } = recovered
  const manifest: Manifest = {
    storeId,
    state: 'open',
    snapshot: snapshot?.number ?? 0,
    end: end.position,
    revision,
    ceiling: revision + RESERVED,
  }
  const file = opened?.file ?? (await ManifestFile.create(disk, manifest))
  try {
    if (opened) await file.write(manifest)
    else await upgrade(disk, recovered, segmentBytes)
    await removeOutdated(disk, await disk.list(), snapshot)
    return new Checkpoints(file, clock, manifest)
  } catch (error) {
    await file.close().catch(() => {})
    throw error
  }
}

/**
 * A folder without a manifest opens only if none of its files has a format that requires one. So a
 * segment in the new format replaces the prepared, empty segments.
 */
async function upgrade(disk: Disk, { storeId, end }: Recovered, bytes: number): Promise<void> {
  const { segment } = end.position
  for (const number of segmentNumbers(await disk.list())) {
    if (number > segment) await disk.remove(segmentName(number))
  }
  try {
    await prepareSegment(disk, { storeId, number: segment + 1, bytes })
  } catch (error) {
    // On a full disk the store opens anyway and prepares the segment when there is space.
    if (!isFull(error)) throw error
  }
}
