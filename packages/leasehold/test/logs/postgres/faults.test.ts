import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { postgresLog } from '../../../src/logs/postgres/index.ts'
import { Recorder } from '../../../src/testing/log-conformance/recorder.ts'
import {
  describeWith,
  Engine,
  POSTGRES,
  POSTGRES_CRASH,
  POSTGRES_UNSYNCED,
  postgresUrl,
} from '../../engines/index.ts'
import { faultSuite } from '../suites/fault-suite.ts'

function poolOf(connectionString: string): pg.Pool {
  return new pg.Pool({ connectionString, max: 4 }).on('error', () => {})
}

describeWith(POSTGRES, 'the PostgreSQL log, when the server', () => {
  faultSuite({
    spec: POSTGRES,
    crash: POSTGRES_CRASH,
    open: async (port, schema) => {
      const pool = poolOf(postgresUrl(port))
      const log = await postgresLog(pool, { schema, timeout: 2000 })
      return { log, end: () => pool.end() }
    },
  })
})

describeWith(POSTGRES, 'the PostgreSQL log', () => {
  let engine: Engine
  let pool: pg.Pool

  beforeAll(async () => {
    engine = await Engine.start(POSTGRES_UNSYNCED)
    pool = poolOf(postgresUrl(engine.port))
  }, 60_000)

  afterAll(async () => {
    await pool?.end()
    await engine?.stop()
  })

  it('shows entries in the order of their positions, although an earlier append commits late', async () => {
    const log = await postgresLog(pool, { schema: 'ordered' })
    const first = await log.append(Buffer.from('a'))
    const follower = new Recorder(log, first, 15_000)
    const slow = await pool.connect()
    await slow.query('begin')
    await slow.query('update ordered.head set last = last + 1')
    await slow.query(`insert into ordered.entry values (${first + 1}, 'b')`)
    const next = log.append(Buffer.from('c'))
    await expect
      .poll(() => pool.query('select 1 from pg_locks where not granted').then((it) => it.rowCount))
      .toBeGreaterThan(0)
    expect(await log.tail()).toBe(first)
    await slow.query('commit')
    slow.release()
    expect(await next).toBe(first + 2)
    await follower.until(2)
    expect(follower.texts).toEqual(['b', 'c'])
    follower.close()
  })

  it('recognises tables that were emptied', async () => {
    const log = await postgresLog(pool, { schema: 'emptied' })
    const last = await log.append(Buffer.from('a'))
    await pool.query('truncate emptied.head, emptied.entry')
    await expect(log.append(Buffer.from('b'))).rejects.toMatchObject({ code: 'unknown-outcome' })
    expect(await new Recorder(log, last, 15_000).untilEnded()).toEqual({ cause: 'ahead', tail: 0 })
    expect(await log.append(Buffer.from('c'))).toBe(1)
  })

  it('refuses a user without rights, a wrong login, and a database that cannot be reached', async () => {
    const log = await postgresLog(pool, { schema: 'guarded' })
    await pool.query('create role reader login')
    await pool.query('grant usage on schema guarded to reader')
    await pool.query('grant select on all tables in schema guarded to reader')
    const reader = poolOf(postgresUrl(engine.port).replace('postgres@', 'reader@'))
    await expect(postgresLog(reader, { schema: 'guarded' })).rejects.toMatchObject({
      code: 'forbidden',
    })
    await reader.end()
    const nobody = poolOf(postgresUrl(engine.port).replace('postgres@', 'nobody@'))
    await expect(postgresLog(nobody)).rejects.toMatchObject({ code: 'unauthenticated' })
    await nobody.end()
    const away = poolOf(postgresUrl(1))
    await expect(postgresLog(away)).rejects.toMatchObject({ code: 'timeout' })
    await away.end()
    await log.close()
  })

  it('refuses a damaged snapshot, and reports a read-only database', async () => {
    const log = await postgresLog(pool, { schema: 'damaged' })
    await log.saveSnapshot({ position: 3, chunks: [Buffer.from('one')] })
    await pool.query(`update damaged.part set bytes = 'two' where name like '%.0'`)
    await expect(log.loadSnapshot()).rejects.toMatchObject({ code: 'storage-damaged' })
    const only = poolOf(`${postgresUrl(engine.port)}?options=-c%20default_transaction_read_only=on`)
    await expect(postgresLog(only, { schema: 'damaged' })).rejects.toMatchObject({
      message: expect.stringContaining('read-only'),
    })
    await only.end()
  })
})
