import pg from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type PostgresFence, postgresFence } from '../../src/fence/index.ts'
import { describeWith, Engine, POSTGRES, POSTGRES_CRASH, postgresUrl } from '../engines/index.ts'
import { runNode } from '../structure/commands.ts'
import { ROOT } from '../structure/source-files.ts'
import { itIsAFence, nearlyInOrder, newResource, remembersAcrossCrashes } from './fence-cases.ts'

describeWith(POSTGRES, 'a fence in PostgreSQL', () => {
  let engine: Engine
  let pool: pg.Pool
  let sql: postgres.Sql
  let turn = 0
  /** A client of each library in turn: they must agree. */
  const open = (): PostgresFence => postgresFence(turn++ % 2 === 0 ? pool : sql)

  beforeAll(async () => {
    engine = await Engine.start(POSTGRES)
    const url = postgresUrl(engine.port)
    pool = new pg.Pool({ connectionString: url, max: 8 })
    pool.on('error', () => {})
    sql = postgres(url, { max: 8, onnotice: () => {}, backoff: false })
    await Promise.all(Array.from({ length: 12 }, () => open().prepare()))
    await pool.query('create table writes (at bigserial primary key, resource text, token bigint)')
  })

  afterAll(async () => {
    await pool?.end().catch(() => {})
    await sql?.end({ timeout: 1 })
    await engine?.stop()
  })

  itIsAFence(open)

  it('creates its table once if many do so at the same time, also under another name', async () => {
    await pool.query('create schema if not exists own')
    const fences = Array.from({ length: 12 }, (_, index) =>
      postgresFence(index % 2 === 0 ? pool : sql, { table: 'own.guard' }),
    )
    await Promise.all(fences.map((fence) => fence.prepare()))
    await fences[0]!.prepare()
    await fences[0]!.admit('a', 10)
    await expect(fences[1]!.admit('a', 9)).rejects.toMatchObject({ highest: 10 })
    for (const table of ['Own', 'a-b', 'a.b.c', 'a; drop', '', 'x'.repeat(64)]) {
      expect(() => postgresFence(pool, { table })).toThrow('table is')
    }
  })

  it('says what to do if the table is missing, and does not call the token stale', async () => {
    for (const client of [pool, sql]) {
      const refused = postgresFence(client, { table: 'nowhere' }).admit('a', 1)
      await expect(refused).rejects.toMatchObject({ code: 'invalid-argument' })
      await expect(refused).rejects.toThrow('Call prepare()')
    }
  })

  it('writes and checks in one transaction: the written tokens never decrease', async () => {
    const resource = newResource()
    const tokens = nearlyInOrder(300, 60)
    const viaPg = async (token: number) => {
      const client = await pool.connect()
      try {
        await client.query('begin')
        await postgresFence(pool).within(client, resource, token)
        await client.query('insert into writes (resource, token) values ($1, $2)', [
          resource,
          token,
        ])
        await client.query('commit')
      } catch (error) {
        await client.query('rollback')
        throw error
      } finally {
        client.release()
      }
    }
    const viaPostgresJs = (token: number) =>
      sql.begin(async (transaction) => {
        await postgresFence(sql).within(transaction, resource, token)
        await transaction`insert into writes (resource, token) values (${resource}, ${token})`
      })
    let refused = 0
    const lanes = Array.from({ length: 12 }, async (_, lane) => {
      const write = lane % 2 === 0 ? viaPg : viaPostgresJs
      for (let token = tokens.shift(); token !== undefined; token = tokens.shift()) {
        await write(token).catch((error: unknown) => {
          expect(error).toMatchObject({ code: 'stale-token' })
          refused++
        })
      }
    })
    await Promise.all(lanes)
    const { rows } = await pool.query<{ token: string }>(
      'select token from writes where resource = $1 order by at',
      [resource],
    )
    const written = rows.map((row) => Number(row.token))
    expect(written).toEqual([...written].sort((a, b) => a - b))
    expect(written.length + refused).toBe(300)
    expect(written.at(-1)).toBe(300)
    expect(refused).toBeGreaterThan(0)
  })

  it('makes a newer holder wait for the transaction of an older one', async () => {
    const resource = newResource()
    const fence = open()
    let isDone = false
    await sql
      .begin(async (transaction) => {
        await fence.within(transaction, resource, 5)
        const newer = fence.admit(resource, 6).then(() => {
          isDone = true
        })
        // The server reports that the newer one waits for this transaction.
        let waiting = 0
        while (waiting === 0) {
          const [row] =
            await transaction`select count(*)::int as waiting from pg_locks where not granted`
          waiting = row!['waiting'] as number
        }
        expect(isDone).toBe(false)
        return { newer }
      })
      .then(({ newer }) => newer)
    await expect(fence.admit(resource, 5)).rejects.toMatchObject({ highest: 6 })
  })

  it('keeps nothing of a transaction that was rolled back', async () => {
    const resource = newResource()
    const fence = open()
    const failed = sql.begin(async (transaction) => {
      await fence.within(transaction, resource, 7)
      throw new Error('changed its mind')
    })
    await expect(failed).rejects.toThrow('changed its mind')
    await fence.admit(resource, 5)
  })

  it("offers the check as a part of the caller's statement", async () => {
    const resource = newResource()
    const fence = postgresFence(pool)
    const text = `with admitted as (${fence.sql})
      insert into writes (resource, token) select $1, token from admitted returning at`
    const write = async (token: number) => (await pool.query(text, [resource, token])).rowCount
    expect([await write(9), await write(10), await write(9), await write(10)]).toEqual([1, 1, 0, 1])
  })

  it('stores the token as a number, in a table that survives a crash', async () => {
    const { rows } = await pool.query(
      `select data_type, relpersistence from information_schema.columns, pg_class
       where table_name = 'leasehold_fence' and column_name = 'token' and relname = table_name`,
    )
    expect(rows).toEqual([{ data_type: 'bigint', relpersistence: 'p' }])
  })

  it('remembers every admitted token when PostgreSQL crashes repeatedly under load', async () => {
    await remembersAcrossCrashes({
      fences: [postgresFence(pool), postgresFence(sql)],
      lives: 2,
      crash: () => engine.kill(POSTGRES_CRASH),
      restart: () => engine.restart(),
    })
  }, 240_000)

  it('works as the example shows', async () => {
    const url = postgresUrl(engine.port)
    const ran = await runNode(['examples/dist/engines/fenced-postgres.js', url], ROOT)
    expect(ran).toEqual({
      code: 0,
      stderr: '',
      stdout:
        'the newer holder pays 100 with token 10\n' +
        'the late one is refused: stale-token, it has seen 10\n' +
        'balance: 100\n',
    })
  })

  describe('that cannot be reached', () => {
    it('leaves the outcome unknown', async () => {
      const gone = new pg.Pool({ host: '127.0.0.1', port: 1 })
      const failed = postgresFence(gone).admit('a', 1)
      await expect(failed).rejects.toMatchObject({ code: 'unknown-outcome', outcome: 'unknown' })
      await gone.end()
    })
  })
})
