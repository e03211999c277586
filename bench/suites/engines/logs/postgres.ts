/** Leases on a log in a table, against an upsert and a delete of one row. */
import { postgresLog } from 'leasehold/postgres'
import { replicaStore } from 'leasehold/replica'
import { startPostgres } from '../../../engines/start.js'
import type { Row } from '../../../measure/rows.js'
import { poolOf, rawPair } from '../postgres/setup.js'
import { compareLog } from './compare-log.js'

const rows: Row[] = []
const engine = await startPostgres()
if (engine) {
  const [mine, theirs] = [poolOf(engine), poolOf(engine)]
  rows.push(
    ...(await compareLog({
      engine: 'PostgreSQL',
      store: await replicaStore(await postgresLog(mine, { timeout: '60s' })),
      rawName: 'upsert + delete',
      raw: await rawPair(theirs),
      pids: [engine.pid],
      runs: [
        [64, 20_000, 4000, 6],
        [512, 40_000, 4000, undefined],
      ],
    })),
  )
  await mine.end()
  await theirs.end()
  await engine.end()
}
console.log(JSON.stringify(rows))
