export { AdaptiveTtl, type HoldEnd, type Observation } from './adaptive-ttl.ts'
export type { Choice } from './choice.ts'
export type { Expected } from './cost.ts'
export type { AdaptiveOptions } from './settings.ts'
