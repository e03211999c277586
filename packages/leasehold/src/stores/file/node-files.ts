import type { Dirent } from 'node:fs'
import { chmod, lstat, mkdir, readdir } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { LeaseholdError } from '../../port/index.ts'
import { MANIFEST, segmentNumbers } from './segment.ts'

/** Only the user that a store runs as can read what is in it. */
export const FILE_MODE = 0o600
const FOLDER_MODE = 0o700
const OTHERS = 0o077

/** The files that are the store's own; a folder may hold others. */
const OWN = /^((log|snapshot)-\d{8,}|manifest)(\.tmp)?$/

export async function makeFolder(folder: string): Promise<void> {
  // A parent that is missing is not the store's own: it gets the usual permissions.
  await mkdir(dirname(resolve(folder)), { recursive: true })
  await mkdir(folder, { recursive: true, mode: FOLDER_MODE })
}

/** The names in the folder. What has the name of a store's file and is something else is refused. */
export async function listFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true })
  for (const entry of entries) {
    if (!OWN.test(entry.name) || entry.isFile()) continue
    throw new LeaseholdError(
      'storage-damaged',
      `${join(folder, entry.name)} is ${kindOf(entry)}, where a store has a file. Nothing was changed. Move it away and open the store again`,
    )
  }
  return entries.map(({ name }) => name)
}

/** Whether the folder has any file of a store. */
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
 * Takes from others the permissions that earlier versions gave them. The folder itself is tightened
 * only where an earlier version made the store: after that its permissions are the operator's.
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
    // Another user's file that this one may write to: its permissions are that user's to change.
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'EPERM' && code !== 'ENOENT') throw error
  }
}
