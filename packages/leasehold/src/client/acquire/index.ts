export { type Acquisition, acquire } from './acquire.ts'
export { Conflict } from './conflict.ts'
export { type HoldOptions, LeaseSources } from './lease-sources.ts'
