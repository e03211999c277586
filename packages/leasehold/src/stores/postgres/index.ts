export type { PgPool, PgPoolClient, PostgresClient, PostgresJs } from './client.ts'
export { postgresMigration, SCHEMA_VERSION } from './migrate.ts'
export type { PostgresStoreOptions } from './options.ts'
export { postgresStore } from './postgres-store.ts'
