import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

/**
 * Why no small file system can be made here, if so: one can where a user may have a namespace of
 * mounts.
 */
export const obstacle = findObstacle()

function findObstacle(): string | undefined {
  try {
    execFileSync('unshare', ['-rm', 'mount', '-t', 'tmpfs', 'tmpfs', tmpdir()], { stdio: 'pipe' })
    return undefined
  } catch (error) {
    return `no tmpfs of its own can be mounted here: ${(error as Error).message.split('\n')[0]}`
  }
}

/** Runs a program with the root of a new file system of this size. Returns its output. */
export async function runOnSmallDisk(program: string, size: string): Promise<string> {
  const root = mkdtempSync(join(tmpdir(), 'leasehold-full-'))
  try {
    const command = 'mount -t tmpfs -o size="$4" tmpfs "$1" && exec "$2" --import tsx "$3" "$1"'
    const { stdout } = await promisify(execFile)(
      'unshare',
      ['-rm', 'sh', '-c', command, 'sh', root, process.execPath, program, size],
      { timeout: 30_000 },
    )
    return stdout
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}
