export { Brake, type BrakeOptions, brakeLimits } from './brake.ts'
export { type AddressKind, addressKind, parseAddress } from './check/address.ts'
export type { Check, CheckSpec, CheckStatus, CheckTiming, OnCritical } from './check/check.ts'
export {
  type CheckedPolicy,
  type CheckPolicy,
  type CheckTarget,
  type ConnectionPlace,
  checkedPolicy,
  complaintAboutAddress,
  complaintAboutTarget,
  type PolicySettings,
  type Scheme,
  targetOf,
} from './check/check-policy.ts'
export type { CheckChange } from './checker/check-schedule.ts'
export { type CheckState, nextState } from './checker/check-state.ts'
export { Checker, type CheckerEvents, type CheckerOptions } from './checker/checker.ts'
export type {
  Lookup,
  NetworkProbes,
  Probe,
  ProbeLoader,
  ProbeResult,
  ProbeSettings,
} from './checker/probe.ts'
export { Catalog, type CatalogOptions } from './discovery/catalog.ts'
export {
  type Change,
  Discovery,
  type LeftReason,
  type WatchEvents,
  type WatchOptions,
} from './discovery/discovery.ts'
export { choose, PICK_STRATEGIES, type PickOptions, type PickStrategy } from './discovery/pick.ts'
export type { Description, InstanceSpec } from './instance/description.ts'
export type { InstanceUpdate, RegistryEntry } from './instance/entry.ts'
export {
  type Filter,
  HEALTH,
  healthKey,
  type Instance,
  type InstanceDetails,
  SERVICES,
  type Status,
  servicesKey,
} from './instance/instance.ts'
export {
  type ExpectedNode,
  NodeHeartbeat,
  type NodeInfo,
  type NodeOptions,
  type NodeStop,
  NodesWatch,
  type NodesWatchOptions,
} from './registration/nodes.ts'
export type { PresenceEvents, PresenceState } from './registration/presence.ts'
export {
  type PresenceOptions,
  type RegisterOptions,
  Registration,
} from './registration/registration.ts'
export { Registry } from './registry.ts'
