export * from './disk.ts'
export * from './file-store.ts'
export { copyFolder } from './folder-copy.ts'
export { nodeDisk } from './node-disk.ts'
