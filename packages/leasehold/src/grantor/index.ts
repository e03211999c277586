export * from './durability.ts'
export * from './grantor.ts'
