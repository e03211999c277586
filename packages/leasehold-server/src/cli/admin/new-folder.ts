import { mkdir, open, readdir, rename, rm, rmdir } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { show } from 'leasehold/port'
import { EXIT, Exit } from '../exit-codes.ts'

/**
 * Creates a folder atomically: `make` fills `<folder>.partial`, which is then renamed. The folder is
 * complete or missing.
 */
export async function createFolder<Result>(
  folder: string,
  make: (partial: string) => Promise<Result>,
): Promise<Result> {
  const target = resolve(folder)
  if ((await readdir(target).catch(() => [])).length > 0) {
    throw new Exit(
      EXIT.failed,
      `${show(folder)} is not empty: move it away first, or use another folder`,
    )
  }
  const partial = `${target}.partial`
  await rm(partial, { recursive: true, force: true })
  await mkdir(partial, { recursive: true, mode: 0o700 })
  try {
    const result = await make(partial)
    await sync(partial)
    await rmdir(target).catch(() => {})
    await rename(partial, target)
    await sync(dirname(target))
    return result
  } catch (error) {
    await rm(partial, { recursive: true, force: true })
    throw error
  }
}

/** Makes the names in a folder durable, if the system supports it. */
async function sync(folder: string): Promise<void> {
  if (process.platform === 'win32') return
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
