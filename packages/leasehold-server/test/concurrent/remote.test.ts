import fc from 'fast-check'
import { compareConcurrently, concurrentSchedules, randomRuns, type Tick } from 'leasehold/testing'
import { describe, it } from 'vitest'
import { RemoteDriver, type RemoteFault, STORES } from './remote-driver.ts'

// The store with tied leases only leaves when no call is in flight: see `leave`.
const store = fc.integer({ min: 0, max: STORES - 2 })
const faults: fc.Arbitrary<RemoteFault> = fc.oneof(
  fc.record({ do: fc.constant('cut' as const), store }),
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('cut after' as const),
      store,
      direction: fc.constantFrom('up' as const, 'down' as const),
      bytes: fc.constantFrom(0, 1, 50, 150, 300, 600),
    }),
  },
  fc.constant({ do: 'restart' } as const),
  fc.constant({ do: 'leave' } as const),
)

describe('stores on a server, with concurrent calls', () => {
  it('do to the millisecond what the kernel does, on one connection each', async () => {
    const schedules: fc.Arbitrary<Tick<RemoteFault>[]> = concurrentSchedules(fc, { stores: STORES })
    await fc.assert(
      fc.asyncProperty(schedules, (schedule) =>
        compareConcurrently(() => RemoteDriver.open(1), schedule),
      ),
      randomRuns(30),
    )
  }, 240_000)

  it('do so when connections break and when the server is restarted', async () => {
    const schedules: fc.Arbitrary<Tick<RemoteFault>[]> = concurrentSchedules(fc, {
      stores: STORES,
      faults,
    })
    await fc.assert(
      fc.asyncProperty(schedules, (schedule) =>
        compareConcurrently(() => RemoteDriver.open(1), schedule),
      ),
      randomRuns(60),
    )
  }, 240_000)
})
