import pg from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { postgresLog } from '../../../src/logs/postgres/index.ts'
import { logConformance } from '../../../src/testing/index.ts'
import {
  describeWith,
  Engine,
  POSTGRES,
  POSTGRES_UNSYNCED,
  postgresUrl,
} from '../../engines/index.ts'
import { logSuite } from '../suites/log-suite.ts'

describeWith(POSTGRES, 'the PostgreSQL log', () => {
  let engine: Engine
  let pool: pg.Pool
  let sql: postgres.Sql
  let schemas = 0

  beforeAll(async () => {
    engine = await Engine.start(POSTGRES_UNSYNCED)
    // Each open follower has a connection, and all cases run at once.
    pool = new pg.Pool({ connectionString: postgresUrl(engine.port), max: 60 })
    sql = postgres(postgresUrl(engine.port), { max: 8, fetch_types: false, onnotice: () => {} })
  }, 60_000)

  afterAll(async () => {
    await pool?.end()
    await sql?.end()
    await engine?.stop()
  })

  const create = async (listen: boolean) => {
    const schema = `s${++schemas}`
    return { open: () => postgresLog(pool, { schema, listen, timeout: 20_000 }) }
  }

  describe('without LISTEN', () => logSuite(() => create(false)))

  describe('with LISTEN', () => {
    for (const { name, run } of logConformance({ create: () => create(true) })) it(name, run)
  })

  describe('through postgres.js', () => {
    const ofJs = async () => {
      const schema = `s${++schemas}`
      return { open: () => postgresLog(sql, { schema }) }
    }
    for (const { name, run } of logConformance({ create: ofJs })) it(name, run)
  })
})
