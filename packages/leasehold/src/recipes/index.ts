export * from './lock.ts'
