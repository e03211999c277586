import type { LeaseStore } from '../port/index.ts'
import { type MemoryStoreOptions, memoryStore } from '../stores/memory/index.ts'
import { TestClock } from './test-clock.ts'

export interface TestStoreOptions extends Omit<MemoryStoreOptions, 'clock'> {
  /** Where time begins; positive. */
  readonly start?: number | undefined
}

export interface TestStore {
  readonly store: LeaseStore
  /** Give it to the client too, and client and store live in the same time. */
  readonly clock: TestClock
}

/**
 * A memory store for tests, on a clock that only the test moves: a lease of an hour expires when
 * the test has called `await clock.advance(3_600_000)`, and not before. It uses no timer that a
 * test runner can fake, so that it works the same beside fake timers as without them.
 */
export function testStore(options: TestStoreOptions = {}): TestStore {
  const { start, ...rest } = options
  const clock = new TestClock(start)
  return { store: memoryStore({ ...rest, clock }), clock }
}
