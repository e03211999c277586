import pg from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, describe, it } from 'vitest'
import type { Limits } from '../../../src/port/index.ts'
import { type PostgresStoreOptions, postgresStore } from '../../../src/stores/postgres/index.ts'
import { conformance, type Opened } from '../../../src/testing/index.ts'
import { describeWith, Engine, POSTGRES, postgresUrl } from '../../engines/index.ts'

/** Small enough that a test can reach every limit. */
const SMALL: Partial<Limits> = {
  keysPerClaim: 40,
  claimsPerLease: 30,
  claimsPerKey: 40,
  childrenPerLease: 12,
  leaseDepth: 4,
  events: 256,
  historyPerKey: 4,
}

describeWith(POSTGRES, 'the PostgreSQL store', () => {
  let engine: Engine
  let pool: pg.Pool
  let sql: postgres.Sql

  beforeAll(async () => {
    engine = await Engine.start(POSTGRES)
    const url = postgresUrl(engine.port)
    pool = new pg.Pool({ connectionString: url, max: 24 })
    sql = postgres(url, { max: 12, fetch_types: false, onnotice: () => {} })
  })

  afterAll(async () => {
    await pool?.end()
    await sql?.end({ timeout: 1 })
    await engine?.stop()
  })

  const onPool = (options: PostgresStoreOptions) => () => open(() => pool, options)
  const onSql = (options: PostgresStoreOptions) => () => open(() => sql, options)

  async function open(client: () => pg.Pool | postgres.Sql, options: PostgresStoreOptions) {
    const store = await postgresStore(client(), { limits: SMALL, ...options })
    // Long enough for a busy machine that runs all cases at once.
    return { store, ttl: 2500 }
  }

  describe('through pg', { concurrent: true }, () => cases(onPool({})))
  describe('through postgres.js', { concurrent: true }, () => cases(onSql({ schema: 'other' })))
  // Past holdings are kept with the events. If few are kept, other cases would push them out.
  const few = { ...SMALL, history: 256 }
  describe('with a short history', () => {
    cases(onPool({ schema: 'little', limits: few }), /^watches: an old revision/)
  })

  function cases(opening: () => Promise<Opened>, some = /^/): void {
    for (const { name, skip, run } of conformance({ open: opening, limits: SMALL, shared: true })) {
      if (some.test(name)) it.skipIf(skip)(name, run)
    }
  }
})
