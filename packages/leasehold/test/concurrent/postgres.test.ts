import fc from 'fast-check'
import pg from 'pg'
import { afterAll, beforeAll, it } from 'vitest'
import type { LeaseStore } from '../../src/port/index.ts'
import { postgresStore } from '../../src/stores/postgres/index.ts'
import {
  compareConcurrently,
  concurrentSchedules,
  randomRuns,
  type Tick,
} from '../../src/testing/index.ts'
import { describeWith, Engine, POSTGRES, postgresUrl } from '../engines/index.ts'
import { leftOpen } from '../setup/changed-store.ts'
import { EngineDriver, endAll } from './engine-driver.ts'

const schedules: fc.Arbitrary<Tick<never>[]> = concurrentSchedules(fc, { stores: 2 })

describeWith(POSTGRES, 'two PostgreSQL stores, with concurrent calls', () => {
  let engine: Engine
  let pool: pg.Pool
  let stores: LeaseStore[]
  let opened = 0

  beforeAll(async () => {
    engine = await Engine.start(POSTGRES)
    pool = new pg.Pool({ connectionString: postgresUrl(engine.port), max: 20 })
    stores = await Promise.all([0, 1].map(() => postgresStore(pool, { schema: 'many' })))
  })

  afterAll(async () => {
    for (const store of stores ?? []) await store.close()
    await pool?.end()
    await engine?.stop()
  })

  it('behave like the kernel with the calls in some order', async () => {
    const open = async () => {
      await endAll(stores[0]!)
      return new EngineDriver(stores.map(leftOpen), `run-${opened++}/`)
    }
    await fc.assert(
      fc.asyncProperty(schedules, (schedule) => compareConcurrently(open, schedule)),
      randomRuns(40),
    )
  }, 240_000)
})
