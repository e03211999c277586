import type { Clock, Revision, Timer } from '../../port/index.ts'
import { type Disk, isFull } from './disk.ts'
import type { LogPosition } from './log-writer.ts'
import { type Manifest, ManifestFile } from './manifest.ts'
import { type Recovered, removeOutdated } from './recovery.ts'
import { prepareSegment, segmentName, segmentNumbers } from './segment.ts'

/** Work that is older than this is covered by the manifest, if the disk keeps up. */
const EVERY_MS = 1000
/**
 * How many revisions are reserved ahead. After a crash the store skips what is left of them, so it
 * must be small enough that restarts cannot outrun `epochOf` of the server, which counts 2048 for a
 * millisecond: no process can crash and start again within 32 ms for long.
 */
export const RESERVED = 65_536

/**
 * Keeps the manifest up to date while a store is open: how far the log is durable, which snapshot
 * is there, and which revisions may have been given. The manifest is written beside the commits,
 * not in them; a commit waits for it only if all reserved revisions are used up.
 */
export class Checkpoints {
  readonly #file: ManifestFile
  readonly #clock: Clock
  /** What the file holds durably. */
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

  /** The log is durable up to `end`, and has every change up to `revision`. */
  committed(end: LogPosition, revision: Revision): void {
    this.#end = end
    this.#revision = Math.max(this.#revision, revision)
    const isLow = this.#manifest.ceiling - revision < RESERVED / 2
    if (isLow || end.segment > this.#manifest.end.segment) this.#writeSoon()
    else if (end.sequence > this.#manifest.end.sequence) this.#arm()
  }

  /** Fulfilled when the manifest names this snapshot: from then on older files may be removed. */
  async snapshotTaken(number: number): Promise<void> {
    this.#snapshot = number
    while (this.#manifest.snapshot < number) await this.#write()
  }

  /** `last` says where the log ends, if everything was written. */
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

  /** A failure is no loss: the manifest before it stands, and the next commit tries again. */
  #writeSoon(): void {
    if (!this.#closed) this.#write().catch(() => this.#arm())
  }

  /** Writes what is known now; joins a write that is under way, which may know less. */
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
 * Says in the manifest that the store is open and goes on from this revision, and only then removes
 * what the newest snapshot has made superfluous.
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
 * A folder without a manifest opens only if none of its files has a format that asks for one. So the
 * segments that are ready and empty make way for one in the new format.
 */
async function upgrade(disk: Disk, { storeId, end }: Recovered, bytes: number): Promise<void> {
  const { segment } = end.position
  for (const number of segmentNumbers(await disk.list())) {
    if (number > segment) await disk.remove(segmentName(number))
  }
  try {
    await prepareSegment(disk, { storeId, number: segment + 1, bytes })
  } catch (error) {
    // On a full disk the store opens all the same, and prepares it when there is space.
    if (!isFull(error)) throw error
  }
}
