export * from '../../stores/postgres/index.ts'
export type { PostgresLogOptions } from './options.ts'
export { postgresLog } from './postgres-log.ts'
