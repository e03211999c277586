import fc from 'fast-check'
import { describe, it } from 'vitest'
import { type Command, commandSequences } from '../../../src/testing/index.ts'
import { Pair } from './pair.ts'
import { Description, rebuildFromChanges } from './rebuild.ts'

const sequences: fc.Arbitrary<Command[]> = commandSequences(fc)
const short: fc.Arbitrary<Command[]> = commandSequences(fc, { length: 12 })
const downtimes = fc.constantFrom(0, 7, 1000)

function runAll(pair: Pair, commands: readonly Command[]): void {
  for (const command of commands) pair.run(command)
}

function grant(ttl: number, rest: Partial<Extract<Command, { do: 'grant' }>> = {}): Command {
  return { do: 'grant', holder: 'alice', ttl, ...rest }
}

const onA = { claims: [{ key: 'a' }] }

describe('a rebuilt kernel', () => {
  it('from its changes is the same, and continues the same', () => {
    fc.assert(
      fc.property(sequences, sequences, downtimes, short, (before, after, downtime, last) => {
        const pair = new Pair()
        runAll(pair, before)
        rebuildFromChanges(pair, 0)
        runAll(pair, after)
        rebuildFromChanges(pair, downtime)
        runAll(pair, last)
      }),
      { numRuns: 150 },
    )
  }, 240_000)

  it('from a description of it at one moment is the same, and continues the same', () => {
    fc.assert(
      fc.property(sequences, downtimes, sequences, (before, downtime, after) => {
        const pair = new Pair()
        runAll(pair, before)
        const description = new Description(pair)
        while (description.unfinished) description.slice(3)
        description.memory()
        description.rebuild(downtime)
        runAll(pair, after)
      }),
      { numRuns: 150 },
    )
  }, 240_000)

  it('from a description made in slices while it changed is the same', () => {
    const slices = fc.array(fc.tuple(fc.integer({ min: 1, max: 4 }), short), {
      maxLength: 5,
      size: 'max',
    })
    fc.assert(
      fc.property(sequences, slices, short, short, (before, between, later, after) => {
        const pair = new Pair()
        runAll(pair, before)
        const description = new Description(pair)
        for (const [count, commands] of between) {
          if (description.unfinished) description.slice(count)
          runAll(pair, commands)
        }
        while (description.unfinished) description.slice(2)
        description.memory()
        runAll(pair, later)
        // It is unknown when a claim began to hold if the one before it was removed between two slices.
        pair.tenuresExact = false
        description.rebuild(0)
        runAll(pair, after)
      }),
      { numRuns: 150 },
    )
  }, 240_000)

  it('has no tenure of a claim that was removed together with the one before it', () => {
    const pair = new Pair()
    runAll(pair, [grant(100, onA), grant(100, onA), { do: 'revoke', target: 'key', at: 0 }])
    rebuildFromChanges(pair, 0)
  })

  it('has no tenure of a child that waited for its parent and ended with it', () => {
    const pair = new Pair()
    runAll(pair, [grant(10, onA), grant(100, { ...onA, parent: 0 }), { do: 'pass', ms: 20 }])
    rebuildFromChanges(pair, 0)
  })

  it('knows since when a claim holds that was promoted before it was described', () => {
    const pair = new Pair()
    runAll(pair, [grant(10, onA), grant(100, onA), { do: 'pass', ms: 20 }])
    const description = new Description(pair)
    while (description.unfinished) description.slice(1)
    description.memory()
    description.rebuild(0)
  })

  it('keeps a child under its parent, whose slot was described with an earlier lease', () => {
    const pair = new Pair()
    runAll(pair, [grant(10)])
    const description = new Description(pair)
    description.slice(1)
    runAll(pair, [{ do: 'pass', ms: 20 }, grant(100), grant(100, { parent: 0 })])
    while (description.unfinished) description.slice(1)
    description.memory()
    description.rebuild(0)
    runAll(pair, [{ do: 'revoke', target: 'lease', at: 1 }])
  })
})
