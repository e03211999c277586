export type { PoolDefinition, Resource } from './definition/definition.ts'
export type { Attribute, Demand, Where } from './definition/where.ts'
export type { Permit, PreemptionNotice } from './permit.ts'
export { type PermitTry, Pool } from './pool.ts'
export { Pools } from './pools.ts'
export type { TakeOptions } from './request.ts'
export type { Forecast } from './schedule/forecast.ts'
export type {
  PermitStatus,
  PoolStatus,
  QueueStatus,
  ResourceStatus,
  TenantStatus,
} from './status.ts'
