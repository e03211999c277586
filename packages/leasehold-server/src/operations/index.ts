export { MeasuredStore } from './measured-store.ts'
export { StoreObserver } from './observer.ts'
export { type OperationsOptions, serveOperations } from './routes.ts'
