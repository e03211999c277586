export { AdaptiveTtl, type HoldEnd, type ObservedHold } from './adaptive-ttl.ts'
export type { TtlChoice } from './choice.ts'
export type { ExpectedCost } from './cost.ts'
export type { AdaptiveOptions } from './settings.ts'
