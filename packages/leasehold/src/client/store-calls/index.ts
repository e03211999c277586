export { GONE, ReleaseCall, revokeLease } from './removals.ts'
export { RetryingStore } from './retrying-store.ts'
export { closedError, type Outcome, StoreCall, storeError } from './store-call.ts'
