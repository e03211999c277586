import { copyFile, type FileHandle, open, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { isLeaseholdError, LeaseholdError, type Revision, show } from '../../port/index.ts'
import { FILE_MODE, listFiles, makeFolder } from './disk/node-files.ts'
import { openCopy } from './file-store.ts'
import {
  MANIFEST,
  segmentName,
  segmentNumbers,
  snapshotName,
  snapshotNumbers,
} from './log/segment.ts'

const ATTEMPTS = 10
/** The unit of copying. The system may show a write half done only within such a page. */
const PAGE = 4096

type Between = (() => Promise<void>) | undefined

/**
 * Copies the store in a folder to another folder, which must be empty or missing. Then opens the
 * copy, to check that it is whole. The store may be in use meanwhile. Returns the revision of the
 * copy.
 *
 * Why the copy of a growing log is the log of one moment: the log is written front to back, one
 * write at a time, and written bytes never change. So it is copied back to front: the last segment
 * first, and in each segment the last page first. Everything before a copied page was written
 * earlier, and is still there when it is copied later. So the copy ends where the log ended when
 * its last page was copied. A write that was in progress at that moment is dropped when the copy is
 * opened, as after a crash. (A page that was copied in the middle of a write looks like damage:
 * then the copy is made again.)
 *
 * The manifest is copied first: everything that it calls durable is in the log that is copied
 * later. The snapshot is copied before the log: when the snapshot got its name, the log contained
 * all that it needs. If the snapshot or a segment disappears before it is copied, a newer snapshot
 * has replaced it, and the copy starts again.
 *
 * Tests use `between`, which runs after each copied page.
 */
export async function copyFolder(from: string, to: string, between?: Between): Promise<Revision> {
  await makeFolder(to)
  if ((await readdir(to)).length > 0) {
    throw new LeaseholdError(
      'invalid-argument',
      `${show(to)} is not empty: name an empty folder, or one that does not exist yet`,
    )
  }
  for (let attempt = 1; ; attempt++) {
    try {
      await copyOnce(from, to, between)
      return await revisionOf(to)
    } catch (error) {
      for (const name of await readdir(to)) await rm(join(to, name), { force: true })
      const isGone = (error as NodeJS.ErrnoException).code === 'ENOENT'
      if (attempt === ATTEMPTS || !(isGone || isLeaseholdError(error, 'storage-damaged'))) {
        throw error
      }
    }
  }
}

async function copyOnce(from: string, to: string, between: Between): Promise<void> {
  const copy = (name: string) => copyFile(join(from, name), join(to, name))
  if ((await listFiles(from)).includes(MANIFEST)) await copy(MANIFEST)
  const names = await listFiles(from)
  const segments = segmentNumbers(names)
  if (segments.length === 0) {
    throw new LeaseholdError(
      'invalid-argument',
      `${show(from)} holds no store: name the folder that the server keeps its data in`,
    )
  }
  const newest = snapshotNumbers(names).at(-1)
  if (newest !== undefined) await copy(snapshotName(newest))
  for (const number of segments.toReversed()) {
    const name = segmentName(number)
    await copyBackwards(join(from, name), join(to, name), between)
  }
}

async function copyBackwards(from: string, to: string, between: Between): Promise<void> {
  const source = await open(from, 'r')
  try {
    const target = await open(to, 'wx', FILE_MODE)
    try {
      const { size } = await source.stat()
      await target.truncate(size)
      await copyPages(source, target, size, between)
    } finally {
      await target.close()
    }
  } finally {
    await source.close()
  }
}

async function copyPages(
  source: FileHandle,
  target: FileHandle,
  size: number,
  between: Between,
): Promise<void> {
  const page = Buffer.alloc(PAGE)
  for (let at = Math.floor((size - 1) / PAGE) * PAGE; at >= 0; at -= PAGE) {
    const { bytesRead } = await source.read(page, 0, PAGE, at)
    const bytes = page.subarray(0, bytesRead)
    // Leave unwritten parts as holes: they may be most of a segment.
    if (bytes.some((byte) => byte !== 0)) await target.write(bytes, 0, bytesRead, at)
    await between?.()
  }
  await target.sync()
}

/** Opens the copy. This refuses a damaged copy and removes an unfinished write. */
async function revisionOf(folder: string): Promise<Revision> {
  const store = await openCopy(folder)
  try {
    return (await store.read({ leases: true, limit: 1 })).revision
  } finally {
    await store.close()
  }
}
