export * from './cache.ts'
