import fc from 'fast-check'
import { describe, it } from 'vitest'
import { memoryStore } from '../../src/stores/memory/index.ts'
import {
  compareConcurrently,
  concurrentSchedules,
  randomRuns,
  type Tick,
} from '../../src/testing/index.ts'
import { WorldDriver } from './world-driver.ts'

/** Small rings: allocating large ones takes longer than running a schedule. */
const limits = { history: 256, events: 1024 }

class MemoryDriver extends WorldDriver<never> {
  readonly rules = { limits, exactAfter: 0, inOrder: 'all', times: 'all' } as const

  static async open(seed: number): Promise<MemoryDriver> {
    const driver = new MemoryDriver(seed)
    driver.use(memoryStore({ clock: driver.node.clock(), limits }))
    return driver
  }
}

describe('the memory store, with concurrent calls', () => {
  it('behaves like the kernel in the order of the calls, to the millisecond', async () => {
    const schedules: fc.Arbitrary<Tick<never>[]> = concurrentSchedules(fc)
    await fc.assert(
      fc.asyncProperty(schedules, (schedule) =>
        compareConcurrently(() => MemoryDriver.open(1), schedule),
      ),
      randomRuns(200),
    )
  }, 240_000)
})
