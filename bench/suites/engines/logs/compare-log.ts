import { Leasehold } from 'leasehold'
import type { LeaseStore } from 'leasehold/port'
import { compare } from '../../../measure/compare.js'
import type { Row } from '../../../measure/rows.js'
import { type Pair, pairsPerSecond } from '../../parts/server/pairs.js'

export interface LogBench {
  /** The name of the engine. */
  readonly engine: string
  readonly store: LeaseStore
  /** The engine's own way to lock and unlock. */
  readonly raw: Pair
  readonly rawName: string
  /** The processes of the engine. */
  readonly pids: readonly number[]
  /** The number in flight, the number of pairs per run of ours and of theirs, and the goal. */
  readonly runs: readonly (readonly [
    inFlight: number,
    ours: number,
    theirs: number,
    goal: number | undefined,
  ])[]
}

/** Lock and unlock by our client on a replica of the log, against the engine's own way. */
export async function compareLog(bench: LogBench): Promise<Row[]> {
  const leasehold = await Leasehold.open(bench.store, { holder: 'bench' })
  const ours: Pair = async (key) => {
    const lock = await leasehold.lock(key, { ttl: '60s' })
    await lock.release()
  }
  const rows: Row[] = []
  for (const [inFlight, mine, theirs, goal] of bench.runs) {
    const run = (pair: Pair, pairs: number) => async () => ({
      value: await pairsPerSecond(pair, inFlight, pairs),
      count: pairs,
    })
    const { pids } = bench
    rows.push(
      ...(await compare({
        name: `${bench.engine}, lock + unlock, ${inFlight} in flight`,
        unit: 'pairs/s',
        better: 'more',
        ours: { name: 'ours', run: run(ours, mine), pids },
        peers: [{ name: bench.rawName, run: run(bench.raw, theirs), pids, goal }],
      })),
    )
  }
  await leasehold.close()
  await bench.store.close()
  return rows
}
