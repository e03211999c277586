import pg from 'pg'
import postgres from 'postgres'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import type { Granted, LeaseholdError, LeaseStore } from '../../../../src/port/index.ts'
import { postgresStore } from '../../../../src/stores/postgres/index.ts'
import { describeWith, Engine, POSTGRES, postgresUrl } from '../../../engines/index.ts'
import { TcpProxy } from '../../../faults/index.ts'

const TIMEOUT = 600
/** A call may be later than a plain timer of this process by this much. */
const LATE = 250

describeWith(POSTGRES, 'a PostgreSQL that accepts everything and never answers', () => {
  let engine: Engine
  let line: TcpProxy
  let pool: pg.Pool

  beforeAll(async () => {
    engine = await Engine.start(POSTGRES)
    line = await TcpProxy.to(engine.port)
    pool = new pg.Pool({ connectionString: postgresUrl(line.port), max: 10 })
    pool.on('error', () => {})
  })

  afterEach(() => line.heal())

  afterAll(async () => {
    await pool?.end()
    await line?.close()
    await engine?.stop()
  })

  /**
   * How long a call took to fail, and its error. The time by which a plain timer was late is not
   * counted: on a busy machine this process itself stands still.
   */
  const failed = async (call: Promise<unknown>) => {
    const asked = performance.now()
    const since = () => performance.now() - asked
    const timer = new Promise<number>((resolve) => setTimeout(() => resolve(since()), TIMEOUT))
    const error = await call.then(
      () => undefined,
      (error: LeaseholdError) => error,
    )
    const ms = since()
    const stalled = (await timer) - TIMEOUT
    return { ms: ms - stalled, code: error?.code, message: error?.message }
  }

  /** Three calls in a row: two are sent, and the third waits for their answers. */
  const threeOf = async (call: () => Promise<unknown>) => {
    const calls: ReturnType<typeof failed>[] = []
    for (let count = 0; count < 3; count++) {
      calls.push(failed(call()))
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    return Promise.all(calls)
  }

  const within = async (calls: ReturnType<typeof threeOf>) => {
    for (const { ms, code } of await calls) {
      expect(code).toBe('unknown-outcome')
      expect(ms).toBeLessThan(TIMEOUT + LATE)
    }
  }

  const opened = (schema: string): Promise<LeaseStore> =>
    postgresStore(pool, { schema, timeout: TIMEOUT })

  it('fails a renewal after the timeout, even if it waits behind others', async () => {
    const store = await opened('renewals')
    const { lease } = (await store.grant({ holder: 'a', ttl: 60_000 })) as Granted
    line.cut()
    await within(threeOf(() => store.renew([lease])))
    line.heal()
    await store.close()
  })

  it('fails a change after the timeout, even if it waits behind others', async () => {
    const store = await opened('changes')
    line.cut()
    await within(threeOf(() => store.grant({ holder: 'a', ttl: 60_000 })))
    line.heal()
    await store.close()
  })

  it('fails a change after the timeout, even while a watch starts', async () => {
    const store = await opened('watched')
    line.cut()
    const watch = store.watch({ prefix: '' }, () => {})
    await new Promise((resolve) => setTimeout(resolve, TIMEOUT / 2))
    await within(threeOf(() => store.grant({ holder: 'a', ttl: 60_000 })))
    watch.close()
    line.heal()
    await store.close()
  })

  it('makes opening a store fail after the timeout', async () => {
    line.cut()
    const silent = new pg.Pool({ connectionString: postgresUrl(line.port), max: 4 })
    silent.on('error', () => {})
    const { ms, code, message } = await failed(postgresStore(silent, { timeout: TIMEOUT }))
    expect(code).toBe('unknown-outcome')
    expect(message).toMatch(/did not answer within 600 ms/)
    expect(ms).toBeLessThan(TIMEOUT + LATE)
    line.heal()
    await silent.end()
  })

  it('makes opening a store with postgres.js fail after the timeout', async () => {
    line.cut()
    const sql = postgres(postgresUrl(line.port), { max: 4, fetch_types: false, onnotice: () => {} })
    const { ms, code } = await failed(postgresStore(sql, { timeout: TIMEOUT }))
    expect(code).toBe('unknown-outcome')
    expect(ms).toBeLessThan(TIMEOUT + LATE)
    line.heal()
    await sql.end()
  })

  it('makes opening a store with a silent listener fail, and keeps none of its connections', async () => {
    const direct = new pg.Pool({ connectionString: postgresUrl(engine.port), max: 4 })
    const listen = new pg.Pool({ connectionString: postgresUrl(line.port), max: 4 })
    listen.on('error', () => {})
    line.cut()
    // Not the first store of its schema: creating the schema takes time.
    await postgresStore(direct, { schema: 'listens' }).then((store) => store.close())
    const opening = postgresStore(direct, { schema: 'listens', timeout: TIMEOUT, listen })
    const { ms, code, message } = await failed(opening)
    expect(code).toBe('unknown-outcome')
    expect(message).toMatch(/did not answer within 600 ms/)
    expect(ms).toBeLessThan(TIMEOUT + 2 * LATE)
    line.heal()
    await expect.poll(() => listen.totalCount - listen.idleCount, { timeout: 5000 }).toBe(0)
    await direct.end()
    await listen.end()
  })
})
