import { copyFile, type FileHandle, open, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { isLeaseholdError, LeaseholdError, type Revision, show } from '../../port/index.ts'
import { openCopy } from './file-store.ts'
import { FILE_MODE, listFiles, makeFolder } from './node-files.ts'
import { MANIFEST, segmentName, segmentNumbers, snapshotName, snapshotNumbers } from './segment.ts'

const ATTEMPTS = 10
/** What the machine copies at once, and what a write can be seen to be half done in. */
const PAGE = 4096

type Between = (() => Promise<void>) | undefined

/**
 * Copies the store in a folder to another one, which must be empty or not there, and opens the copy
 * to see that it is whole. The store may be in use meanwhile. Answers with the revision of the copy.
 *
 * Why the copy of a log that grows is the log of a moment. A log is written front to back, one write
 * at a time, and is never changed where it has been written. So it is copied back to front: the last
 * segment first, and of each segment the last page first. Whatever a page has, all before it was
 * written before, and is still there when it is copied later. The copy therefore ends where the
 * log ended when the page of its end was copied; what was being written there at that moment is left
 * out when the copy is opened, like what a crash leaves behind. (A page of it that was caught in
 * the middle cannot be told from damage: then the copy is made again.)
 *
 * The manifest comes first: what it says is durable is in the log that is copied after it. The
 * snapshot comes before the log. When it had its name the log had all that it needs; and when it, or
 * a segment, is gone before it was copied, a newer snapshot has taken its place: the copy begins
 * anew.
 *
 * `between` is awaited after each page that is copied: for tests.
 */
export async function copyFolder(
  from: string,
  to: string,
  between?: () => Promise<void>,
): Promise<Revision> {
  await makeFolder(to)
  if ((await readdir(to)).length > 0) {
    throw new LeaseholdError(
      'invalid-argument',
      `${show(to)} is not empty: name a folder that is, or one that is not there yet`,
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
  if ((await listFiles(from)).includes(MANIFEST)) {
    await copyFile(join(from, MANIFEST), join(to, MANIFEST))
  }
  const names = await listFiles(from)
  const segments = segmentNumbers(names)
  if (segments.length === 0) {
    throw new LeaseholdError(
      'invalid-argument',
      `${show(from)} holds no store: name the folder that the server keeps its data in`,
    )
  }
  const newest = snapshotNumbers(names).at(-1)
  if (newest !== undefined) {
    const name = snapshotName(newest)
    await copyFile(join(from, name), join(to, name))
  }
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
    // What was never written stays a hole: most of a segment may be.
    if (bytes.some((byte) => byte !== 0)) await target.write(bytes, 0, bytesRead, at)
    await between?.()
  }
  await target.sync()
}

/** Opens it, which refuses what is not whole and wipes what was not finished. */
async function revisionOf(folder: string): Promise<Revision> {
  const store = await openCopy(folder)
  try {
    return (await store.read({ leases: true, limit: 1 })).revision
  } finally {
    await store.close()
  }
}
