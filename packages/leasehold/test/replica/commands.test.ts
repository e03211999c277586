import fc from 'fast-check'
import { describe, it } from 'vitest'
import {
  type Command,
  commandSequences,
  compareWithKernel,
  randomRuns,
  type Turn,
} from '../../src/testing/index.ts'
import { openReplicas } from './open-replicas.ts'

/** A small history: allocating a large one takes longer than running a sequence. */
const limits = { history: 256 }

const sequences: fc.Arbitrary<Command[]> = commandSequences(fc)

describe('replicas, given random commands', () => {
  it('do exactly what the kernel does, at the same millisecond', async () => {
    const open = () => openReplicas(1, limits)
    await fc.assert(
      fc.asyncProperty(sequences, (commands) =>
        compareWithKernel(open, commands, { limits, ownDeadlines: true }),
      ),
      randomRuns(300),
    )
  }, 120_000)

  it.each([2, 3])(
    'do so through %s replicas at once',
    async (stores) => {
      const turns: fc.Arbitrary<Turn[]> = commandSequences(fc, { stores })
      const open = () => openReplicas(stores, limits)
      await fc.assert(
        fc.asyncProperty(turns, (commands) =>
          compareWithKernel(open, commands, { limits, ownDeadlines: true }),
        ),
        randomRuns(200),
      )
    },
    120_000,
  )
})
