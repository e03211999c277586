export type { PoolDefinition, Resource } from './definition.ts'
export type { Forecast } from './estimate.ts'
export type { Permit, PreemptionNotice } from './permit.ts'
export { type PermitTry, Pool } from './pool.ts'
export { Pools } from './pools.ts'
export type { TakeOptions } from './request.ts'
export type {
  LineStatus,
  PermitStatus,
  PoolStatus,
  ResourceStatus,
  TenantStatus,
} from './status.ts'
export type { Attribute, Demand, Where } from './where.ts'
