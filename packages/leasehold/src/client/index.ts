export { Conflict } from './attempt.ts'
export { Client, type HoldOptions } from './client.ts'
export type { ClientEvents, LeaseNews, LossNews } from './emitter.ts'
export type { Hold, HoldState } from './hold.ts'
export { openStore } from './open-store.ts'
export { type ClientOptions, settingsOf } from './settings.ts'
export {
  type Renewal,
  STRATEGIES,
  type Strategy,
  type StrategyName,
  type TimingOptions,
} from './timing.ts'
