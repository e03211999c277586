/**
 * Lock and unlock on PostgreSQL, against the minimum for a lock in a table: an upsert and a delete
 * of one row by prepared statements. Every change is committed to the disk before the answer.
 */

import { startPostgres } from '../../../engines/start.js'
import { compare, type Peer } from '../../../measure/compare.js'
import type { Row } from '../../../measure/rows.js'
import { type Pair, pairsPerSecond } from '../../parts/server/pairs.js'
import { openPostgres, poolOf, rawPair, storePair } from './setup.js'

const rows: Row[] = []
const engine = await startPostgres()
if (engine) {
  const ours = await openPostgres(engine)
  const pool = poolOf(engine)
  const [mine, raw] = [await storePair(ours.store), await rawPair(pool)]
  for (const [inFlight, pairs] of [
    [1, 500],
    [64, 6000],
    [512, 12_000],
  ] as const) {
    const run = (pair: Pair) => async () => ({
      value: await pairsPerSecond(pair, inFlight, pairs),
      count: pairs,
    })
    const pids = [engine.pid]
    const peer: Peer = {
      name: 'upsert + delete',
      run: run(raw),
      pids,
      ...(inFlight > 1 && { goal: 0.8 }),
    }
    rows.push(
      ...(await compare({
        name: `claim + release, ${inFlight} in flight`,
        unit: 'pairs/s',
        better: 'more',
        ours: { name: 'ours', run: run(mine), pids },
        peers: [peer],
      })),
    )
  }
  await ours.end()
  await pool.end()
  await engine.end()
}
console.log(JSON.stringify(rows))
