import { mkdirSync, renameSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import {
  invalid,
  LeaseholdError,
  type Random,
  show,
  systemRandom,
  type Token,
} from '../port/index.ts'
import { checkAdmission, type Fence, refuseStale } from './fence.ts'
import { FenceLog } from './fence-log.ts'

export interface FileFenceOptions {
  readonly random?: Random | undefined
}

/**
 * A fence in a folder on this machine's disk. An admitted token is on disk before the answer. Any
 * number of processes may use one folder at once; one that is paused or killed does not block the
 * others.
 *
 * **Not promised.** The folder must be on a local disk: over a network, appending to a file is not
 * one step, and none of this would hold. The folder belongs to the fence alone.
 */
export interface FileFence extends Fence {
  /**
   * Replaces a file with this content, durably, unless the token is stale. Readers see the old file or
   * the new one, never a part. A stale writer that wakes up late is refused.
   *
   * The content is written to a temporary file. The last check and the rename that puts it in place
   * are two consecutive system calls. Within one process nothing comes between them.
   *
   * **Not promised.** Another process can come between the two calls, because no file system has a
   * conditional rename. If a writer is paused exactly there, and a newer holder in another process
   * is admitted and writes, the old writer replaces the newer file when it continues. If that must
   * not happen, let one process do all the writing.
   */
  writeFile(
    resource: string,
    token: Token,
    path: string,
    content: string | Uint8Array,
  ): Promise<void>

  /** Closes the folder's log. Later calls are refused with `closed`. */
  close(): Promise<void>
}

/** Opens the fence in this folder. Creates the folder if it does not exist. */
export async function fileFence(
  folder: string,
  options: FileFenceOptions = {},
): Promise<FileFence> {
  const { random = systemRandom } = options
  if (typeof folder !== 'string' || folder === '') {
    throw invalid(`folder is ${show(folder)}: give the path of the folder for the fence`)
  }
  const log = attempt(`the fence in ${folder} cannot be opened`, () => {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    return new FenceLog(folder, random)
  })

  async function admit(resource: string, token: Token): Promise<void> {
    checkAdmission(resource, token)
    const highest = attempt(`the fence in ${folder} failed`, () => log.raise(resource, token))
    // A refusal waits, too: it must not depend on something that a crash could undo.
    await log.durable()
    refuseStale(resource, token, highest)
  }

  return {
    admit,
    async writeFile(resource, token, path, content) {
      await admit(resource, token)
      const aside = join(dirname(path), `.${basename(path)}.${random.id()}.tmp`)
      try {
        await writeDurably(aside, content)
        if (log.highest(resource) <= token) renameSync(aside, path)
        else await admit(resource, token)
        await syncFolderOf(path)
      } catch (error) {
        await rm(aside, { force: true })
        throw explained(`${path} may not have been replaced`, error)
      }
    },
    close: () => log.close(),
  }
}

async function writeDurably(path: string, content: string | Uint8Array): Promise<void> {
  const file = await open(path, 'wx')
  try {
    await file.writeFile(content)
    await file.sync()
  } finally {
    await file.close()
  }
}

async function syncFolderOf(path: string): Promise<void> {
  if (process.platform === 'win32') return
  const folder = await open(dirname(path), 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

function attempt<Result>(what: string, run: () => Result): Result {
  try {
    return run()
  } catch (error) {
    throw explained(what, error)
  }
}

/** Turns an error of the file system into one of ours. */
function explained(what: string, error: unknown): LeaseholdError {
  if (error instanceof LeaseholdError) return error
  const { code, message } = error as NodeJS.ErrnoException
  const isFull = code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG'
  return new LeaseholdError(
    isFull ? 'storage-full' : 'storage-failed',
    `${what} (${message}): ${isFull ? 'free some space' : 'check the disk and the permissions'} and ask again`,
    { cause: error },
  )
}
