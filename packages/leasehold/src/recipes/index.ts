export * from './lock.ts'
export * from './pool/index.ts'
export * from './registry/index.ts'
export * from './session/index.ts'
