export {
  type ConformanceCase,
  type ConformanceOptions,
  conformance,
  type Opened,
} from './conformance/index.ts'
export { TestClock } from './test-clock.ts'
export { type TestStore, type TestStoreOptions, testStore } from './test-store.ts'
