import pg from 'pg'
import { afterAll, beforeAll } from 'vitest'
import { Engine, POSTGRES_UNSYNCED, postgresUrl } from '../../engines/index.ts'

/** Starts an engine for the tests around it. Returns its connection pool. */
export function postgresPool(): () => pg.Pool {
  let engine: Engine
  let pool: pg.Pool
  beforeAll(async () => {
    engine = await Engine.start(POSTGRES_UNSYNCED)
    const connectionString = postgresUrl(engine.port)
    pool = new pg.Pool({ connectionString, max: 16 }).on('error', () => {})
  }, 60_000)
  afterAll(async () => {
    await pool?.end()
    await engine?.stop()
  })
  return () => pool
}
