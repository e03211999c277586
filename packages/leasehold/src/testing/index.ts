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
  type Act,
  type Asked,
  compareConcurrently,
  concurrentSchedules,
  type Driver,
  type Entry,
  type History,
  type Outcome,
  type RandomRuns,
  type Restart,
  type Rules,
  randomRuns,
  type ScheduleOptions,
  type Tick,
  type Times,
} from './concurrent/index.ts'
export {
  type ConformanceCase,
  type ConformanceOptions,
  conformance,
  type Opened,
} from './conformance/index.ts'
export {
  type CreatedLog,
  type LogConformanceCase,
  type LogConformanceOptions,
  logConformance,
} from './log-conformance/index.ts'
export * from './sim/index.ts'
export { TestClock } from './test-clock.ts'
export { type TestStore, type TestStoreOptions, testStore } from './test-store.ts'
