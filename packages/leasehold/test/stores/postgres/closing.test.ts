import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { postgresStore } from '../../../src/stores/postgres/index.ts'
import { Ear } from '../../../src/testing/conformance/ear.ts'
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

  it('ends a call that waits for a watch to begin, and leaves the process its time', async () => {
    const store = await postgresStore(pool, { schema: 'waits', timeout: 1000 })
    line.cut()
    const ear = new Ear(store, { prefix: '' })
    const call = store.grant({ holder: 'a', ttl: 60_000 })
    const refused = expect(call).rejects.toMatchObject({ code: 'closed' })
    // The watch has asked the database now, and the call waits for its answer.
    await sleep(50)
    const closing = store.close()
    await ear.next('interrupted')
    await refused
    line.heal()
    await closing
  })
})
