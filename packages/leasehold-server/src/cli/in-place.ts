import { mkdir, open, readdir, rename, rm, rmdir } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { show } from 'leasehold/port'
import { EXIT, Exit } from './exit-codes.ts'

/**
 * Has a folder made beside where it belongs, and put there when it is whole: what is under the name
 * is all of it or nothing.
 */
export async function inPlace<Result>(
  folder: string,
  make: (place: string) => Promise<Result>,
): Promise<Result> {
  const target = resolve(folder)
  if ((await readdir(target).catch(() => [])).length > 0) {
    throw new Exit(
      EXIT.failed,
      `${show(folder)} is not empty: move it away first, or name another folder`,
    )
  }
  const place = `${target}.partial`
  await rm(place, { recursive: true, force: true })
  await mkdir(place, { recursive: true, mode: 0o700 })
  try {
    const result = await make(place)
    await sync(place)
    await rmdir(target).catch(() => {})
    await rename(place, target)
    await sync(dirname(target))
    return result
  } catch (error) {
    await rm(place, { recursive: true, force: true })
    throw error
  }
}

/** Makes the names in a folder durable, where the system has a way to. */
async function sync(folder: string): Promise<void> {
  if (process.platform === 'win32') return
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
