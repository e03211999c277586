export { describeWith, Engine, type EngineSpec } from './engine.ts'
export { pgbouncer } from './pgbouncer.ts'
export { POSTGRES, POSTGRES_CRASH, postgresUrl } from './postgres.ts'
export { REDIS } from './redis.ts'
