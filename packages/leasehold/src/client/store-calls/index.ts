export { GONE, ReleaseCall, revokeLease } from './removals.ts'
export { RetryingStore } from './retrying-store.ts'
export { closedError, type Outcome, StoreCall, storeError } from './store-call.ts'
export {
  type CallOptions,
  DEFAULT_TIMEOUT_MS,
  limitOf,
  noAnswer,
  type TimeLimit,
  timeoutIn,
} from './time-limit.ts'
