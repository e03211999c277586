import type { LeaseStore } from '../port/index.ts'
import { type MemoryStoreOptions, memoryStore } from '../stores/memory/index.ts'
import { TestClock } from './test-clock.ts'

export interface TestStoreOptions extends Omit<MemoryStoreOptions, 'clock'> {
  /** The start time; positive. */
  readonly start?: number | undefined
}

export interface TestStore {
  readonly store: LeaseStore
  /** Give it to the client, too, so that client and store share the same time. */
  readonly clock: TestClock
}

/**
 * A memory store for tests, on a clock that only the test moves: a lease of an hour expires when the
 * test has called `await clock.advance(3_600_000)`, and not before. It uses no timers that a test
 * runner can fake, so it works the same with fake timers and without.
 */
export function testStore(options: TestStoreOptions = {}): TestStore {
  const { start, ...rest } = options
  const clock = new TestClock(start)
  return { store: memoryStore({ ...rest, clock }), clock }
}
