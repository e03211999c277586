export {
  type Command,
  type CompareOptions,
  commandSequences,
  compareWithKernel,
  type FastCheck,
  type OpenedStores,
  type SequenceOptions,
  type Turn,
} from './commands/index.ts'
export {
  type ConformanceCase,
  type ConformanceOptions,
  conformance,
  type Opened,
} from './conformance/index.ts'
export * from './sim/index.ts'
export { TestClock } from './test-clock.ts'
export { type TestStore, type TestStoreOptions, testStore } from './test-store.ts'
