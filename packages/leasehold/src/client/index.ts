export { Conflict, type HoldOptions } from './acquire/index.ts'
export { Client } from './client.ts'
export {
  type AcquiredEvent,
  type Acquisition,
  type BrokenEvent,
  type ClientEvents,
  type ClosedEvent,
  Emitter,
  type HoldEvent,
  type LeaseEvent,
  type Logger,
  type LossEvent,
  type OpenTelemetryApi,
  openTelemetry,
  type RecipeEvent,
  type RecipeEvents,
  type Telemetry,
} from './events/index.ts'
export {
  type Hold,
  type HoldState,
  type Renewal,
  STRATEGIES,
  type Strategy,
  type StrategyName,
  type TimingOptions,
} from './leases/index.ts'
export { type ClientOptions, type Settings, settingsOf } from './settings.ts'
export { type CallOptions, type RetryingStore, timeoutIn } from './store-calls/index.ts'
export type { Listener, Place, PrefixWatch, Snapshot, View } from './views/index.ts'
