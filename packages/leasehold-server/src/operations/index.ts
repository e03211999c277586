export { MeasuredStore } from './measured-store.ts'
export { PROBE_TTL_MS, StoreObserver } from './observer.ts'
export { type OperationsOptions, serveOperations } from './routes.ts'
