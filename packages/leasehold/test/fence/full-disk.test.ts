import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { obstacle, runOnSmallDisk } from '../stores/file/disk/small-disk.ts'

const child = fileURLToPath(new URL('./full-disk-child.ts', import.meta.url))

describe('a fence on a full disk', () => {
  if (obstacle) console.warn(`skipped: a fence on a disk that is really full (${obstacle})`)

  it.skipIf(obstacle)(
    'reports the full disk, still refuses stale tokens, and recovers without a loss',
    async () => {
      expect(await runOnSmallDisk(child, '1m')).toBe('all is there\n')
    },
    40_000,
  )
})
