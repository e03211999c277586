export {
  type Candidacy,
  type Candidate,
  candidateOf,
  electionNames,
  type Leader,
  leaderOf,
  preemptor,
  preferredBehind,
} from './candidate-queue.ts'
export {
  type CampaignOptions,
  Election,
  type ElectionOptions,
  type LeadOptions,
} from './election.ts'
export type { ElectionEvent } from './events.ts'
export type { HandOver } from './hand-over.ts'
export { Observation, type ObserveOptions } from './observation.ts'
export type { StepDownOptions, Term, TermState } from './term.ts'
