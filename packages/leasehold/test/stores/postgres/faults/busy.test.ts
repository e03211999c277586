import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Granted } from '../../../../src/port/index.ts'
import { type PostgresClient, postgresStore } from '../../../../src/stores/postgres/index.ts'
import { WatchRecorder } from '../../../../src/testing/conformance/watches/watch-recorder.ts'
import { describeWith, Engine, POSTGRES, postgresUrl } from '../../../engines/index.ts'

describeWith(POSTGRES, 'the PostgreSQL store under load', () => {
  let engine: Engine
  let pool: pg.Pool

  beforeAll(async () => {
    engine = await Engine.start(POSTGRES)
    pool = new pg.Pool({ connectionString: postgresUrl(engine.port), max: 10 })
  })

  afterAll(async () => {
    await pool?.end()
    await engine?.stop()
  })

  it('carries out calls while a new watch always has more to report', async () => {
    const other = await postgresStore(pool, { schema: 'news' })
    const { lease, token } = (await other.grant({
      holder: 'a',
      ttl: 60_000,
      claims: [{ key: 'a' }],
    })) as Granted
    let isNoisy = false
    // Whenever the store asks for changes, there are more before the answer arrives.
    const query = async (statement: { text: string }) => {
      const answer = await pool.query(statement)
      if (isNoisy && statement.text.includes('.news(')) {
        await other.update({ lease, key: 'a', token, value: '' })
        await sleep(20)
      }
      return answer
    }
    const noisy = { query, connect: () => pool.connect(), totalCount: 0 }
    const store = await postgresStore(noisy as unknown as PostgresClient, { schema: 'news' })
    const first = new WatchRecorder(store, { prefix: '' })
    await first.next('watching')
    isNoisy = true
    await other.update({ lease, key: 'a', token, value: 'x' })
    const second = new WatchRecorder(store, { prefix: '' })
    const call = store.grant({ holder: 'b', ttl: 60_000 })
    const winner = await Promise.race([call.then(() => 'the answer'), sleep(8000, 'the time-out')])
    isNoisy = false
    await call
    await second.next('watching')
    await Promise.all([store.close(), other.close()])
    expect(winner).toBe('the answer')
  }, 60_000)
})
