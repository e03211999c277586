import fc from 'fast-check'
import { describe, it } from 'vitest'
import { memoryStore } from '../../src/stores/memory/index.ts'
import {
  type Command,
  commandSequences,
  compareWithKernel,
  type Turn,
  testStore,
} from '../../src/testing/index.ts'

const sequences: fc.Arbitrary<Command[]> = commandSequences(fc)

const turns: fc.Arbitrary<Turn[]> = commandSequences(fc, { stores: 2 })

/** A small history: the room for a large one takes longer to make than a sequence to run. */
const limits = { history: 256 }

describe('the memory store, given random commands', () => {
  it('does to the millisecond what the kernel does', async () => {
    const open = async () => {
      const { store, clock } = testStore({ limits })
      return { store, advance: (ms: number) => clock.advance(ms) }
    }
    await fc.assert(
      fc.asyncProperty(sequences, (commands) => compareWithKernel(open, commands, { limits })),
      { numRuns: 300 },
    )
  }, 30_000)

  it('does what the kernel does where time cannot be moved', async () => {
    const open = async () => ({ store: memoryStore({ limits }) })
    await fc.assert(
      fc.asyncProperty(sequences, (commands) => compareWithKernel(open, commands, { limits })),
      { numRuns: 300 },
    )
  }, 30_000)

  it('tells those who watch a lease what the kernel tells', async () => {
    const open = async () => {
      const { store, clock } = testStore({ limits })
      return { store, others: [store], advance: (ms: number) => clock.advance(ms) }
    }
    await fc.assert(
      fc.asyncProperty(turns, (commands) => compareWithKernel(open, commands, { limits })),
      { numRuns: 300 },
    )
  }, 30_000)
})
