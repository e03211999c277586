import fc from 'fast-check'
import { describe, it } from 'vitest'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import {
  type Command,
  commandSequences,
  compareWithKernel,
  type Turn,
  testStore,
} from '../../../src/testing/index.ts'

const sequences: fc.Arbitrary<Command[]> = commandSequences(fc)

const turns: fc.Arbitrary<Turn[]> = commandSequences(fc, { stores: 2 })

/** A small history: allocating a large one takes longer than running a sequence. */
const limits = { history: 256 }

describe('the memory store, given random commands', () => {
  it('behaves like the kernel, to the millisecond', async () => {
    const open = async () => {
      const { store, clock } = testStore({ limits })
      return { store, advance: (ms: number) => clock.advance(ms) }
    }
    await fc.assert(
      fc.asyncProperty(sequences, (commands) => compareWithKernel(open, commands, { limits })),
      { numRuns: 300 },
    )
  }, 30_000)

  it('behaves like the kernel in real time', async () => {
    const open = async () => ({ store: memoryStore({ limits }) })
    await fc.assert(
      fc.asyncProperty(sequences, (commands) => compareWithKernel(open, commands, { limits })),
      { numRuns: 300 },
    )
  }, 30_000)

  it('sends the watches of a lease the same notices as the kernel', async () => {
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
