export * from './event-log.ts'
export * from './remembered-answers.ts'
export * from './tenures.ts'
export * from './two-generation-map.ts'
