import pg from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  type PostgresClient,
  postgresMigration,
  postgresStore,
  SCHEMA_VERSION,
} from '../../../src/stores/postgres/index.ts'
import { describeWith, Engine, POSTGRES, postgresUrl } from '../../engines/index.ts'

describeWith(POSTGRES, 'the schema of the PostgreSQL store', () => {
  let engine: Engine
  let pool: pg.Pool
  let sql: postgres.Sql

  beforeAll(async () => {
    engine = await Engine.start(POSTGRES)
    pool = new pg.Pool({ connectionString: postgresUrl(engine.port), max: 60 })
    sql = postgres(postgresUrl(engine.port), { max: 20, fetch_types: false, onnotice: () => {} })
  })

  afterAll(async () => {
    await pool?.end()
    await sql?.end({ timeout: 1 })
    await engine?.stop()
  })

  const versions = async (schema: string) =>
    (await pool.query(`select version from ${schema}.migrations`)).rows

  it('is created once if many stores open at the same time', async () => {
    const opening = Array.from({ length: 16 }, (_, at) =>
      postgresStore(at % 2 === 0 ? pool : sql, { schema: 'many' }),
    )
    const stores = await Promise.all(opening)
    expect(await versions('many')).toEqual([{ version: SCHEMA_VERSION }])
    const granted = stores.map((store) => store.grant({ holder: 'a', ttl: 1000 }))
    const revisions = (await Promise.all(granted)).map(({ revision }) => revision)
    expect(new Set(revisions).size).toBe(16)
    await Promise.all(stores.map((store) => store.close()))
  })

  it('can be created by hand from the printed SQL; the store then only checks it', async () => {
    const refused = postgresStore(pool, { schema: 'printed', migrate: false })
    await expect(refused).rejects.toMatchObject({ code: 'unsupported' })
    await expect(refused).rejects.toThrow(/printed is not there.*postgresMigration/)
    await pool.query(postgresMigration({ schema: 'printed' }))
    await pool.query(postgresMigration({ schema: 'printed' }))
    const store = await postgresStore(pool, { schema: 'printed', migrate: false })
    await store.close()
  })

  it('is refused if it is newer than this release', async () => {
    const store = await postgresStore(pool, { schema: 'newer' })
    await store.close()
    await pool.query(`insert into newer.migrations (version) values (${SCHEMA_VERSION + 1})`)
    for (const migrate of [true, false]) {
      const refused = postgresStore(pool, { schema: 'newer', migrate })
      await expect(refused).rejects.toMatchObject({ code: 'unsupported' })
      await expect(refused).rejects.toThrow(`version ${SCHEMA_VERSION + 1}`)
    }
  })

  it('says which right is missing, and what to do', async () => {
    await pool.query('create role poor login')
    const url = postgresUrl(engine.port).replace('postgres@', 'poor@')
    const poor = new pg.Pool({ connectionString: url, max: 4 })
    const refused = postgresStore(poor, { schema: 'rich' })
    await expect(refused).rejects.toMatchObject({ code: 'forbidden' })
    await expect(refused).rejects.toThrow(/schema rich.*postgresMigration/)
    await pool.query(postgresMigration({ schema: 'rich' }))
    await expect(postgresStore(poor, { schema: 'rich' })).rejects.toMatchObject({
      code: 'forbidden',
    })
    await pool.query(`grant usage on schema rich to poor;
      grant select, insert, update, delete on all tables in schema rich to poor`)
    const store = await postgresStore(poor, { schema: 'rich', migrate: false })
    expect((await store.grant({ holder: 'a', ttl: 1000 })).outcome).toBe('granted')
    await store.close()
    await poor.end()
  })

  it('requires the isolation level "read committed"', async () => {
    const url = `${postgresUrl(engine.port)}?options=-c%20default_transaction_isolation%3Dserializable`
    const strict = new pg.Pool({ connectionString: url, max: 4 })
    const refused = postgresStore(strict, { schema: 'strict' })
    await expect(refused).rejects.toThrow(/default_transaction_isolation.*read committed/)
    await strict.end()
  })

  it('turns synchronous_commit on, and has no unlogged tables', async () => {
    const url = `${postgresUrl(engine.port)}?options=-c%20synchronous_commit%3Doff`
    const hasty = new pg.Pool({ connectionString: url, max: 4 })
    const store = await postgresStore(hasty, { schema: 'hasty' })
    await pool.query(`create table hasty.seen (setting text);
      create function hasty.see() returns trigger language plpgsql as $$ begin
        insert into hasty.seen values (current_setting('synchronous_commit')); return null; end $$;
      create constraint trigger see after insert or update on hasty.leases
        deferrable initially deferred for each row execute function hasty.see();
      create constraint trigger see after update on hasty.heartbeats
        deferrable initially deferred for each row execute function hasty.see()`)
    const granted = await store.grant({ holder: 'a', ttl: 60_000 })
    await store.renew([(granted as { lease: string }).lease])
    const { rows } = await pool.query('select distinct setting from hasty.seen')
    expect(rows).toEqual([{ setting: 'on' }])
    const tables = await pool.query(
      `select distinct relpersistence from pg_class where relnamespace = 'hasty'::regnamespace`,
    )
    expect(tables.rows).toEqual([{ relpersistence: 'p' }])
    await store.close()
    await hasty.end()
  })

  it('refuses invalid options, and names them', async () => {
    const wrong: [PostgresClient, object, RegExp][] = [
      [pool, { schema: 'Upper' }, /schema is "Upper".*lower-case/],
      [pool, { schema: 'a; drop' }, /schema is/],
      [pool, { schema: 'x'.repeat(49) }, /at most 48/],
      [pool, { timeout: 0 }, /timeout is 0.*'5s'/],
      [pool, { poll: 'infinite' }, /poll is "infinite"/],
      [pool, { listen: {} }, /listen is an object: give a Pool/],
      [undefined as never, {}, /client is undefined: give a Pool of pg/],
      [new pg.Pool({ max: 1 }), {}, /pool of 1 connection.*at least 2/],
      [new pg.Client() as never, {}, /a single Client cannot be shared/],
    ]
    for (const [client, options, said] of wrong) {
      await expect(postgresStore(client, options)).rejects.toMatchObject({
        code: 'invalid-argument',
      })
      await expect(postgresStore(client, options)).rejects.toThrow(said)
    }
  })
})
