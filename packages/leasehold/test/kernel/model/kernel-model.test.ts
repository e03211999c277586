import fc from 'fast-check'
import { describe, it } from 'vitest'
import { type Command, commandSequences } from '../../../src/testing/index.ts'
import { Pair } from './pair.ts'

const sequences: fc.Arbitrary<Command[]> = commandSequences(fc)
const long: fc.Arbitrary<Command[]> = commandSequences(fc, { length: 150 })

describe('the kernel, compared with a simple model', () => {
  it('gives the same answers, readings, events and notices, command by command', () => {
    fc.assert(
      fc.property(sequences, (commands) => {
        const pair = new Pair()
        for (const command of commands) pair.run(command)
      }),
      { numRuns: 1000 },
    )
  }, 240_000)

  it('does so when every limit is reached repeatedly', () => {
    const tight = {
      claimsPerLease: 3,
      claimsPerKey: 3,
      childrenPerLease: 2,
      leaseDepth: 2,
      leases: 6,
      page: 3,
      history: 4,
      historyPerKey: 2,
      idleKeys: 1,
    }
    fc.assert(
      fc.property(long, (commands) => {
        const pair = new Pair(tight)
        for (const command of commands) pair.run(command)
      }),
      { numRuns: 300 },
    )
  }, 240_000)
})
