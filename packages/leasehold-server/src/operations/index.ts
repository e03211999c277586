export { isProbe, PROBE_TTL_MS } from './expiry-probe.ts'
export { type MeasuredStore, measuredStore } from './measured-store.ts'
export { type OperationsOptions, serveOperations } from './routes.ts'
export { StoreObserver } from './store-observer.ts'
