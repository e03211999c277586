export * from './lock.ts'
export * from './pool/index.ts'
export * from './registry/index.ts'
