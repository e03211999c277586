export * from './log.ts'
export { MemoryLog, type MemoryLogOptions } from './memory-log.ts'
export { checkEntry, closedError } from './refusals.ts'
