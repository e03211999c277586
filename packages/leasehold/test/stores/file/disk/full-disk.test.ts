import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { obstacle, runOnSmallDisk } from './small-disk.ts'

const child = fileURLToPath(new URL('./full-disk-child.ts', import.meta.url))

describe('a disk that is really full', () => {
  if (obstacle) console.warn(`skipped: a disk that is really full (${obstacle})`)

  it.skipIf(obstacle)(
    'refuses changes with storage-full, still reads and releases, and recovers without a loss',
    async () => {
      expect(await runOnSmallDisk(child, '3m')).toBe('all is there\n')
    },
    40_000,
  )
})
