import fc from 'fast-check'
import pg from 'pg'
import { afterAll, beforeAll, it } from 'vitest'
import { postgresStore } from '../../../src/stores/postgres/index.ts'
import {
  type Command,
  commandSequences,
  compareWithKernel,
  type Turn,
} from '../../../src/testing/index.ts'
import { describeWith, Engine, POSTGRES, postgresUrl } from '../../engines/index.ts'
import { leftOpen } from '../../setup/changed-store.ts'
import { MovedPostgres } from './moved-clock.ts'

const sequences: fc.Arbitrary<Command[]> = commandSequences(fc)
const turns: fc.Arbitrary<Turn[]> = commandSequences(fc, { stores: 2 })

/** Shrinking waits for each missing notice. After this time it stops and reports its best example. */
const SHRINKING_MS = 60_000

describeWith(POSTGRES, 'the PostgreSQL store, given random commands', () => {
  let engine: Engine
  let pool: pg.Pool

  beforeAll(async () => {
    engine = await Engine.start(POSTGRES)
    pool = new pg.Pool({ connectionString: postgresUrl(engine.port), max: 20 })
  })

  afterAll(async () => {
    await pool?.end()
    await engine?.stop()
  })

  it('behaves like the kernel', async () => {
    const store = await postgresStore(pool, { schema: 'still' })
    const open = async () => ({ store: leftOpen(store) })
    await fc.assert(
      fc.asyncProperty(sequences, (commands) => compareWithKernel(open, commands)),
      { numRuns: 100 },
    )
    await store.close()
  })

  it('behaves like the kernel to the millisecond, with a test clock', async () => {
    const moved = await MovedPostgres.make(pool, 'moved')
    await fc.assert(
      fc.asyncProperty(sequences, (commands) =>
        compareWithKernel(() => moved.open(), commands, { ownDeadlines: true }),
      ),
      { numRuns: 100 },
    )
    await moved.store.close()
  })

  it('behaves like the kernel through two stores at once', async () => {
    const stores = await Promise.all([0, 1].map(() => postgresStore(pool, { schema: 'two' })))
    const [store, other] = stores.map(leftOpen)
    const open = async () => ({ store: store!, others: [other!] })
    await fc.assert(
      fc.asyncProperty(turns, (commands) => compareWithKernel(open, commands)),
      { numRuns: 60, interruptAfterTimeLimit: SHRINKING_MS },
    )
    for (const each of stores) await each.close()
  }, 120_000)
})
