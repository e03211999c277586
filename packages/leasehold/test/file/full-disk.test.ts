import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'

const child = fileURLToPath(new URL('./full-disk-child.ts', import.meta.url))
const obstacle = findObstacle()

/** A small file system can be made where a user may have a namespace of mounts. */
function findObstacle(): string | undefined {
  try {
    execFileSync('unshare', ['-rm', 'mount', '-t', 'tmpfs', 'tmpfs', tmpdir()], { stdio: 'pipe' })
    return undefined
  } catch (error) {
    return `no tmpfs of its own can be mounted here: ${(error as Error).message.split('\n')[0]}`
  }
}

describe('a disk that is really full', () => {
  if (obstacle) console.warn(`skipped: a disk that is really full (${obstacle})`)

  it.skipIf(obstacle)(
    'refuses clearly, is read and freed meanwhile, recovers, and has lost nothing',
    async () => {
      const root = mkdtempSync(join(tmpdir(), 'leasehold-full-'))
      try {
        const command = 'mount -t tmpfs -o size=3m tmpfs "$1" && exec "$2" --import tsx "$3" "$1"'
        const { stdout } = await promisify(execFile)(
          'unshare',
          ['-rm', 'sh', '-c', command, 'sh', root, process.execPath, child],
          { timeout: 30_000 },
        )
        expect(stdout).toBe('all is there\n')
      } finally {
        rmSync(root, { recursive: true, force: true })
      }
    },
    40_000,
  )
})
