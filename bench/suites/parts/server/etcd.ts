/**
 * Durable lock and unlock through the server, against etcd's own Lock and Unlock over gRPC. Each
 * has one connection with 64 calls in flight, keys that nobody else wants, and one lease for all.
 * This is unfair to etcd: it keeps its state by Raft, ready for more members, and its Lock makes
 * several requests; it is Debian's etcd 3.4; and grpc-js costs the client more than our stream.
 */

import { EtcdClient } from '../../../engines/etcd-client.js'
import { startEtcd } from '../../../engines/start.js'
import { compare } from '../../../measure/compare.js'
import type { Row } from '../../../measure/rows.js'
import { type Pair, pairsPerSecond, startOurs } from './pairs.js'

const IN_FLIGHT = 64
const PAIRS = 20_000
const ETCD_PAIRS = 1280

const rows: Row[] = []
const engine = await startEtcd()
if (engine) {
  const ours = await startOurs()
  const etcd = new EtcdClient(engine.port)
  const lease = await etcd.grant(600)
  const theirs: Pair = async (key) => etcd.unlock(await etcd.lock(key, lease))
  const run = (pair: Pair, count: number) => async () => ({
    value: await pairsPerSecond(pair, IN_FLIGHT, count),
    count,
  })
  rows.push(
    ...(await compare({
      name: `durable claim + release, ${IN_FLIGHT} in flight`,
      unit: 'pairs/s',
      better: 'more',
      ours: { name: 'ours', run: run(ours.store, PAIRS), pids: [ours.pid] },
      peers: [
        {
          name: 'etcd Lock + Unlock',
          run: run(theirs, ETCD_PAIRS),
          pids: [engine.pid],
          goal: 20,
        },
      ],
    })),
  )
  etcd.close()
  await ours.end()
  await engine.end()
}
console.log(JSON.stringify(rows))
