export * from './answers.ts'
export * from './change-sink.ts'
export * from './notice-sink.ts'
