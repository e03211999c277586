export { type AddressKind, addressKind, parseAddress } from './address.ts'
export { Brake, type BrakeOptions, brakeLimits } from './brake.ts'
export type { Check, CheckSpec, CheckStatus, CheckTiming, OnCritical } from './check.ts'
export {
  type CheckedPolicy,
  type CheckPolicy,
  type CheckTarget,
  checkedPolicy,
  complaintAboutAddress,
  complaintAboutTarget,
  type Scheme,
  targetOf,
} from './check-policy.ts'
export { type CheckState, nextState } from './check-state.ts'
export { Checker, type CheckerEvents, type CheckerOptions } from './checker.ts'
export type { Description, InstanceSpec } from './description.ts'
export {
  type Change,
  Discovery,
  type LeftReason,
  type WatchEvents,
  type WatchOptions,
} from './discovery.ts'
export type { InstanceNews, RegistryEntry } from './entry.ts'
export { type Filter, type Instance, SERVICES, type Status, servicesKey } from './instance.ts'
export {
  type ExpectedNode,
  NodeHeartbeat,
  type NodeInfo,
  type NodeOptions,
  type NodeStop,
  NodesWatch,
  type NodesWatchOptions,
} from './nodes.ts'
export { choose, PICK_STRATEGIES, type PickOptions, type PickStrategy } from './pick.ts'
export type { PresenceEvents, PresenceState } from './presence.ts'
export type { Lookup, Probe, ProbeMaker, ProbeResult, ProbeSettings } from './probe.ts'
export { type PresenceOptions, type RegisterOptions, Registration } from './registration.ts'
export { Registry } from './registry.ts'
export type { CheckNews } from './rounds.ts'
