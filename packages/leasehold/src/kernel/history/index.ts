export * from './event-log.ts'
export * from './tenures.ts'
export * from './two-generation-map.ts'
