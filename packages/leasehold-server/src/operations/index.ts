export { type MeasuredStore, measuredStore } from './measured-store.ts'
export { type OperationsOptions, serveOperations } from './routes.ts'
export { PROBE_LABEL, PROBE_TTL_MS, StoreObserver } from './store-observer.ts'
