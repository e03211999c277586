export * from './durability.ts'
export * from './grantor.ts'
export { Outbox } from './outbox.ts'
