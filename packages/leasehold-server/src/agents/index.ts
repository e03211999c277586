export { AgentHolds, WAIT_MAX_MS } from './agent-holds.ts'
export type { AgentSession, Caller, SessionOf } from './agent-session.ts'
export type { AheadParty } from './ahead.ts'
export { askBack } from './asks.ts'
export { Fleet, type FleetOptions, type Target } from './fleet.ts'
export { noteOf } from './hold-note.ts'
export {
  type AgentHoldsOptions,
  type AgentNotice,
  type Ceilings,
  DEFAULT_CEILINGS,
  type HoldView,
  type Outcome,
  type Skipped,
} from './hold-requests.ts'
