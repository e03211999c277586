import { describe, it } from 'vitest'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { conformance } from '../../../src/testing/index.ts'

describe('the memory store, in real time', { concurrent: true }, () => {
  // Long enough for a busy machine.
  const open = async () => ({ store: memoryStore(), ttl: 2500 })
  for (const { name, skip, run } of conformance({ open })) it.skipIf(skip)(name, run)
})
