/**
 * The pure functions of the recipes. They decide who leads, whose turn it is and which instance is
 * healthy, so the page agrees with every client.
 */
export { AdaptiveTtl } from '../../../../leasehold/src/adaptive/adaptive-ttl.ts'
export type { TtlChoice } from '../../../../leasehold/src/adaptive/choice.ts'
export {
  type Candidate,
  candidateOf,
  leaderOf,
} from '../../../../leasehold/src/recipes/election/candidate-queue.ts'
export {
  definitionFrom,
  unitsOf,
} from '../../../../leasehold/src/recipes/pool/definition/definition.ts'
export { keysOf, poolSnapshot } from '../../../../leasehold/src/recipes/pool/pool-snapshot.ts'
export {
  type PoolStatus,
  statusOf as poolStatusOf,
} from '../../../../leasehold/src/recipes/pool/status.ts'
export { expectation } from '../../../../leasehold/src/recipes/pool/usage/hold-times.ts'
export type { HoldTimes } from '../../../../leasehold/src/recipes/pool/usage/usage.ts'
export {
  type Description,
  parseDescription,
} from '../../../../leasehold/src/recipes/registry/instance/description.ts'
export {
  healthKey,
  type Instance,
  instanceOf,
  newestHealth,
  partsOfKey,
  type Status,
} from '../../../../leasehold/src/recipes/registry/instance/instance.ts'
export { decode, type SessionRecord } from '../../../../leasehold/src/recipes/session/record.ts'
