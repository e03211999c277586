import pg from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { postgresStore } from '../../../src/stores/postgres/index.ts'
import { conformance } from '../../../src/testing/index.ts'
import { describeWith, Engine, POSTGRES, pgbouncer, postgresUrl } from '../../engines/index.ts'

describeWith(POSTGRES, 'the PostgreSQL store', () => {
  describeWith(pgbouncer(0), 'behind a transaction pooler', () => {
    let engine: Engine
    let pooler: Engine
    let pool: pg.Pool
    let sql: postgres.Sql
    let direct: pg.Pool

    beforeAll(async () => {
      engine = await Engine.start(POSTGRES)
      pooler = await Engine.start(pgbouncer(engine.port))
      pool = new pg.Pool({ connectionString: postgresUrl(pooler.port), max: 16 })
      sql = postgres(postgresUrl(pooler.port), {
        max: 8,
        fetch_types: false,
        onnotice: () => {},
        prepare: false,
      })
      direct = new pg.Pool({ connectionString: postgresUrl(engine.port), max: 16 })
    })

    afterAll(async () => {
      await pool?.end()
      await sql?.end({ timeout: 1 })
      await direct?.end()
      await pooler?.stop()
      await engine?.stop()
    })

    it('refuses to listen through a pooler that delivers no notifications, and says what to do', async () => {
      const opening = postgresStore(pool, { timeout: '1s' })
      await expect(opening).rejects.toMatchObject({ code: 'unsupported' })
      await expect(opening).rejects.toThrow(/pooler.*listen: false/)
    })

    const open = async (client: () => pg.Pool | postgres.Sql, isDirect: boolean) => {
      const listen = isDirect ? direct : false
      const store = await postgresStore(client(), { listen, poll: '20ms' })
      return { store, ttl: 2500 }
    }

    // Cases that do not depend on how changes arrive run without a pooler.
    const told = /^(waiting|watches|revoking|closing)/
    const cases = (opening: () => ReturnType<typeof open>) => {
      for (const { name, skip, run } of conformance({ open: opening, shared: true })) {
        if (told.test(name) && !name.includes('an old revision')) it.skipIf(skip)(name, run)
      }
    }
    describe('polls for changes through pg', { concurrent: true }, () =>
      cases(() => open(() => pool, false)),
    )
    describe('polls for changes through postgres.js', { concurrent: true }, () =>
      cases(() => open(() => sql, false)),
    )
    describe('listens on a direct connection', { concurrent: true }, () =>
      cases(() => open(() => pool, true)),
    )
  })
})
