import fc from 'fast-check'
import { describe, it } from 'vitest'
import {
  compareConcurrently,
  concurrentSchedules,
  randomRuns,
  type Tick,
} from '../../src/testing/index.ts'
import { FileDriver, type FileFault } from './file-driver.ts'

const seeds = fc.integer({ min: 1, max: 1 << 30 })

function schedulesWith(faults: fc.Arbitrary<FileFault>): fc.Arbitrary<Tick<FileFault>[]> {
  return concurrentSchedules(fc, { faults })
}

const slow = fc.record({ do: fc.constant('slow' as const), ms: fc.constantFrom(5, 20, 60) })
const reopen = fc.constant({ do: 'reopen' } as const)
const crash = fc.record({
  do: fc.constant('crash' as const),
  after: fc.constantFrom(0, 0.2, 1, 3, 10),
  power: fc.boolean(),
})
const fail = fc.record({ do: fc.constant('fail' as const), share: fc.constantFrom(0.3, 1) })
const fill = fc.constant({ do: 'fill' } as const)
const heal = fc.constant({ do: 'heal' } as const)

describe('the file store, with concurrent calls', () => {
  it('behaves like the kernel, to the millisecond, on a slow disk and when it is reopened', async () => {
    await fc.assert(
      fc.asyncProperty(schedulesWith(fc.oneof(slow, reopen)), seeds, (schedule, seed) =>
        compareConcurrently(() => FileDriver.open(seed), schedule),
      ),
      randomRuns(200),
    )
  }, 240_000)

  it('loses no change that it answered or reported when it crashes', async () => {
    const faults = fc.oneof(slow, reopen, crash, crash)
    await fc.assert(
      fc.asyncProperty(schedulesWith(faults), seeds, (schedule, seed) =>
        compareConcurrently(() => FileDriver.open(seed, { crashLosesTheLast: true }), schedule),
      ),
      randomRuns(200),
    )
  }, 240_000)

  it('loses no change that it answered or reported when its disk fails or is full', async () => {
    const faults = fc.oneof(slow, reopen, crash, fail, fail, fill, heal)
    const rules = {
      ...{ crashLosesTheLast: true, failsAtOnce: true },
      mayRefuseWith: ['storage-full'],
    } as const
    await fc.assert(
      fc.asyncProperty(schedulesWith(faults), seeds, (schedule, seed) =>
        compareConcurrently(() => FileDriver.open(seed, rules), schedule),
      ),
      randomRuns(300),
    )
  }, 240_000)
})
