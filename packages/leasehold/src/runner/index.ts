export * from './durability.ts'
export * from './kernel-runner.ts'
export { Outbox } from './outbox.ts'
