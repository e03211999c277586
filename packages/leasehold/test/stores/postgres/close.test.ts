import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Granted, systemRandom } from '../../../src/port/index.ts'
import { postgresStore } from '../../../src/stores/postgres/index.ts'
import { WatchRecorder } from '../../../src/testing/conformance/watches/watch-recorder.ts'
import { describeWith, Engine, POSTGRES, postgresUrl } from '../../engines/index.ts'
import { TcpProxy } from '../../faults/index.ts'

describeWith(POSTGRES, 'closing the PostgreSQL store', () => {
  let engine: Engine
  let line: TcpProxy
  let pool: pg.Pool

  beforeAll(async () => {
    engine = await Engine.start(POSTGRES)
    line = await TcpProxy.to(engine.port)
    pool = new pg.Pool({ connectionString: postgresUrl(line.port), max: 10 })
    pool.on('error', () => {})
  })

  afterAll(async () => {
    line?.heal()
    await pool?.end()
    await line?.close()
    await engine?.stop()
  })

  it('fails a call that waits for a watch to start, and lets the process end', async () => {
    const store = await postgresStore(pool, { schema: 'waits', timeout: 1000 })
    line.cut()
    const recorder = new WatchRecorder(store, { prefix: '' })
    const call = store.grant({ holder: 'a', ttl: 60_000 })
    const refused = expect(call).rejects.toMatchObject({ code: 'closed' })
    // Now the watch has asked the database, and the call waits for the answer.
    await sleep(50)
    const closing = store.close()
    await recorder.next('interrupted')
    await refused
    line.heal()
    await closing
  })
  it('hands the deadlines to another store at once', async () => {
    const first = await postgresStore(pool, { schema: 'duty' })
    // Without a notification the other store would check 999 ms after the deadline.
    const random = { ...systemRandom, next: () => 0.998 }
    const second = await postgresStore(pool, { schema: 'duty', random })
    const { lease } = (await second.grant({ holder: 'a', ttl: 150 })) as Granted
    const granted = performance.now()
    const recorder = new WatchRecorder(second, { lease })
    await recorder.next('standing')
    await first.close()
    await recorder.next('gone')
    expect(performance.now() - granted - 150).toBeLessThan(999)
    await second.close()
  })

  it('hands over deadlines that it was about to take over', async () => {
    const store = await postgresStore(pool, { schema: 'taken' })
    await pool.query(`update taken.meta set sweeper = 'a process that died'`)
    await store.grant({ holder: 'a', ttl: 50 })
    const other = await pool.connect()
    await other.query('begin')
    await other.query('select from taken.meta for update')
    const waiting = `select count(*)::integer as count from pg_locks where not granted`
    await expect
      .poll(async () => (await other.query(waiting)).rows[0].count, { timeout: 5000 })
      .toBe(1)
    const closing = store.close()
    await sleep(50)
    await other.query('commit')
    other.release()
    await closing
    await expect
      .poll(async () => (await pool.query('select sweeper from taken.meta')).rows[0].sweeper)
      .toBe(null)
  })
})
