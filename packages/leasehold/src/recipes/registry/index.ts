export { Brake, type BrakeOptions, brakeLimits } from './brake.ts'
export type { Check, CheckSpec, CheckStatus, CheckTiming, OnCritical } from './check.ts'
export type { Description, InstanceSpec } from './description.ts'
export {
  type Change,
  Discovery,
  type LeftReason,
  type WatchEvents,
  type WatchOptions,
} from './discovery.ts'
export { type Filter, type Instance, STATUSES, type Status } from './instance.ts'
export { choose, PICK_STRATEGIES, type PickOptions, type PickStrategy } from './pick.ts'
export type { PresenceEvents, PresenceState } from './presence.ts'
export { type PresenceOptions, type RegisterOptions, Registration } from './registration.ts'
export { Registry } from './registry.ts'
