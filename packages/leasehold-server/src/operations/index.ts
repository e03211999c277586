export { MeasuredStore } from './measured-store.ts'
export { type OperationsOptions, serveOperations } from './routes.ts'
