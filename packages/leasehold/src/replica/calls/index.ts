export * from './author.ts'
export * from './call-deadlines.ts'
export * from './call-queue.ts'
export * from './own-entries.ts'
