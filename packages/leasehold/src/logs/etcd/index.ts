export * from './options.ts'
