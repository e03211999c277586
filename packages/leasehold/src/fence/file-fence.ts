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
 * A fence in a folder of this machine's disk. What was admitted is on the disk before it is
 * answered. Any number of processes may use one folder at once, and one that is paused or killed
 * holds up nobody.
 *
 * **Not promised.** The folder must be on a disk of this machine: over a network, appending to a file
 * is not one step, and nothing here would be true. The folder is the fence's own.
 */
export interface FileFence extends Fence {
  /**
   * Replaces a file by another with this content, durably, unless the token is stale. Readers see
   * the old file or the new one, never a part; a stale writer that wakes up late is refused.
   *
   * The content is written aside. The last check and the rename that puts it in place are two system
   * calls in a row. Within a process nothing comes between them, so there they are one step.
   *
   * **Not promised.** Another process is not kept out between the two calls, because no file system
   * can rename on a condition: a writer that is paused exactly there, while a newer holder in
   * another process is admitted and writes, replaces the newer file when it goes on. Where that
   * must not be, let one process do the writing for all.
   */
  writeFile(
    resource: string,
    token: Token,
    path: string,
    content: string | Uint8Array,
  ): Promise<void>

  /** Gives the folder's log back. What is asked afterwards is refused with `closed`. */
  close(): Promise<void>
}

/** Opens the fence in this folder, which is made if it is not there. */
export async function fileFence(
  folder: string,
  options: FileFenceOptions = {},
): Promise<FileFence> {
  const { random = systemRandom } = options
  if (typeof folder !== 'string' || folder === '') {
    throw invalid(`folder is ${show(folder)}: give the path of a folder to keep the fence in`)
  }
  const log = attempt(`the fence in ${folder} cannot be opened`, () => {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    return new FenceLog(folder, random)
  })

  async function admit(resource: string, token: Token): Promise<void> {
    checkAdmission(resource, token)
    const highest = attempt(`the fence in ${folder} failed`, () => log.raise(resource, token))
    // A refusal waits too: it must not rest on something that a crash could undo.
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

/** A failure of the file system as one of ours. */
function explained(what: string, error: unknown): LeaseholdError {
  if (error instanceof LeaseholdError) return error
  const { code, message } = error as NodeJS.ErrnoException
  const isFull = code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG'
  return new LeaseholdError(
    isFull ? 'storage-full' : 'storage-failed',
    `${what} (${message}): ${isFull ? 'free some space' : 'look after the disk and the permissions'} and ask again`,
    { cause: error },
  )
}
