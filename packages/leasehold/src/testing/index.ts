export { TestClock } from './test-clock.ts'
