export { Conflict } from './attempt.ts'
export { Client, type HoldOptions } from './client.ts'
export type {
  AcquiredNews,
  BrokenNews,
  ClientEvents,
  HoldNews,
  LeaseNews,
  LossNews,
  RecipeEvents,
  RecipeNews,
} from './emitter.ts'
export { Emitter } from './emitter.ts'
export type { Following, Listener } from './following.ts'
export type { Hold, HoldState } from './hold.ts'
export type { Logger } from './logging.ts'
export { openStore } from './open-store.ts'
export { type OpenTelemetryApi, openTelemetry } from './open-telemetry.ts'
export { restAfter } from './patience.ts'
export type { PatientStore } from './patient-store.ts'
export { type ClientOptions, settingsOf } from './settings.ts'
export type { Acquisition, Telemetry } from './telemetry.ts'
export {
  type Renewal,
  STRATEGIES,
  type Strategy,
  type StrategyName,
  type TimingOptions,
} from './timing.ts'
export type { Place, Snapshot, View } from './view.ts'
