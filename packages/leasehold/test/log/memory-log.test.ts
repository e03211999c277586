import { describe, it } from 'vitest'
import { MemoryLog } from '../../src/log/index.ts'
import { logConformance } from '../../src/testing/index.ts'

describe('the memory log', () => {
  const create = async () => {
    const shared = new MemoryLog({ entryBytes: 10_000 })
    return { open: async () => shared.open() }
  }
  for (const { name, run } of logConformance({ create })) it(name, run)
})
