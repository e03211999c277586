export * from './lock.ts'
export * from './registry/index.ts'
