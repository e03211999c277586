import pg from 'pg'
import { afterAll, beforeAll } from 'vitest'
import { Engine, POSTGRES_UNSYNCED, postgresUrl } from '../../engines/index.ts'

/** Has an engine of its own for the tests around it; gives the pool of its connections. */
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
