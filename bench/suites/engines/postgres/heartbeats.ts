/**
 * Heartbeats of many leases, renewed in batches, and their effect on the table. Updates within a
 * page (HOT) do not make it grow. With an index on the deadline, which lock tables often have, it
 * would grow.
 */
import { startPostgres } from '../../../engines/start.js'
import { atLeast, atMost, type Row, row } from '../../../measure/rows.js'
import { openPostgres } from './setup.js'

const LEASES = 20_000
const BATCH = 1000
const ROUNDS = 5
const BEATS = 60_000

const rows: Row[] = []
const engine = await startPostgres()
if (engine) {
  const { pool, store, end } = await openPostgres(engine)
  const leases: string[] = []
  while (leases.length < LEASES) {
    const granted = await Promise.all(
      Array.from({ length: BATCH }, () => store.grant({ holder: 'bench', ttl: 600_000 })),
    )
    leases.push(...granted.map((one) => ('lease' in one ? one.lease : '')))
  }
  const number = async (text: string) =>
    Number(Object.values((await pool.query(text)).rows[0] as object)[0])
  const size = () => number(`select pg_total_relation_size('leasehold.heartbeats')`)
  const beat = async () => {
    const started = performance.now()
    for (let done = 0; done < BEATS; done += BATCH) {
      const from = done % LEASES
      const { lost } = await store.renew(leases.slice(from, from + BATCH))
      if (lost.length > 0) throw new Error('a lease was lost')
    }
    return BEATS / ((performance.now() - started) / 1000)
  }
  await beat()
  const before = await size()
  const rates: number[] = []
  for (let round = 0; round < ROUNDS; round++) rates.push(await beat())
  const growth = (await size()) / before
  await new Promise((resolve) => setTimeout(resolve, 1500))
  const hot = await number(`select n_tup_hot_upd::float8 / n_tup_upd from pg_stat_user_tables
    where schemaname = 'leasehold' and relname = 'heartbeats'`)
  rows.push(
    row(
      `heartbeats of ${LEASES} leases in batches of ${BATCH}`,
      'leases/s',
      rates,
      atLeast(10_000),
    ),
    row('of them updated in place (HOT)', '%', [100 * hot], atLeast(99)),
    row('size of their table after, against before', 'x', [growth], atMost(1.01)),
  )
  await end()
  await engine.end()
}
console.log(JSON.stringify(rows))
