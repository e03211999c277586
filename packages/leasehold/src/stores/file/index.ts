export * from './disk.ts'
export * from './file-store.ts'
export { nodeDisk } from './node-disk.ts'
