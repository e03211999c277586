import type { Dirent } from 'node:fs'
import { chmod, lstat, mkdir, readdir, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { LeaseholdError } from '../../../port/index.ts'
import { MANIFEST, segmentNumbers } from '../log/segment.ts'

/** Only the user of the process can read the files of a store. */
export const FILE_MODE = 0o600
const FOLDER_MODE = 0o700
const OTHERS = 0o077

/** The names of the store's own files; a folder may contain other files. */
const OWN = /^((log|snapshot)-\d{8,}|manifest)(\.tmp)?$/

export async function makeFolder(folder: string): Promise<void> {
  // A missing parent does not belong to the store, so it gets the usual permissions.
  await makeWithParents(dirname(resolve(folder)))
  await makeWithParents(resolve(folder), FOLDER_MODE)
}

/** Node's recursive mkdir never returns in a file system without folders to make, such as /proc. */
async function makeWithParents(folder: string, mode?: number): Promise<void> {
  try {
    await mkdir(folder, { mode })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' && dirname(folder) !== folder) {
      await makeWithParents(dirname(folder))
      await mkdir(folder, { mode }).catch((again: unknown) => assertFolder(folder, again))
    } else await assertFolder(folder, error)
  }
}

/** Somebody else made it: that is fine, if it is a folder. */
async function assertFolder(folder: string, error: unknown): Promise<void> {
  const found = await stat(folder).catch(() => undefined)
  if (!found?.isDirectory()) throw error
}

/** The names in the folder. Refuses an entry that has the name of a store's file but is no file. */
export async function listFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true })
  for (const entry of entries) {
    if (!OWN.test(entry.name) || entry.isFile()) continue
    throw new LeaseholdError(
      'storage-damaged',
      `${join(folder, entry.name)} is ${kindOf(entry)}, but must be a file. Nothing was changed. Move it away and open the store again`,
    )
  }
  return entries.map(({ name }) => name)
}

/** Whether the folder contains any file of a store. */
export async function holdsStore(folder: string): Promise<boolean> {
  return (await readdir(folder)).some((name) => OWN.test(name))
}

function kindOf(entry: Dirent): string {
  if (entry.isDirectory()) return 'a folder'
  if (entry.isSymbolicLink()) return 'a symbolic link'
  if (entry.isFIFO()) return 'a fifo'
  if (entry.isSocket()) return 'a socket'
  return 'a device'
}

/**
 * Removes the permissions that earlier versions gave to other users. The folder itself changes only
 * if such a version created the store: after that its permissions are the operator's choice.
 */
export async function tighten(folder: string): Promise<void> {
  if (process.platform === 'win32') return
  const names = await listFiles(folder)
  if (segmentNumbers(names).length > 0 && !names.includes(MANIFEST)) {
    await restrict(folder, FOLDER_MODE)
  }
  for (const name of names) if (OWN.test(name)) await restrict(join(folder, name), FILE_MODE)
}

async function restrict(path: string, mode: number): Promise<void> {
  try {
    if (((await lstat(path)).mode & OTHERS) !== 0) await chmod(path, mode)
  } catch (error) {
    // Only the owner of a file can change its permissions.
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'EPERM' && code !== 'ENOENT') throw error
  }
}
