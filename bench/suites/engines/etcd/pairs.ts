/**
 * Lock and unlock on etcd, against its own Lock service, and against the minimum for a lock in
 * etcd: one transaction that puts a key if it is free, and one that deletes it if it is still ours.
 * Both are called over gRPC with messages written by hand. Every change is on the disk before the
 * answer.
 *
 * Our store puts all concurrent calls into one entry of its log, so it gains with the number of
 * calls in flight. With one call in flight it needs two changes of etcd, like the others: the
 * minimum is two puts. The Lock service is called with one lease for all keys, like our client; and
 * once with a lease per lock, which is granted before it and revoked instead of the unlock.
 */
import { Leasehold } from 'leasehold'
import { etcdStore } from 'leasehold/etcd'
import { EtcdClient } from '../../../engines/etcd-client.js'
import { startEtcd } from '../../../engines/start.js'
import { compare, type Peer } from '../../../measure/compare.js'
import type { Row } from '../../../measure/rows.js'
import { type Pair, pairsPerSecond, storePair } from '../../parts/server/pairs.js'

const rows: Row[] = []
const engine = await startEtcd()
if (engine) {
  const store = await etcdStore({ endpoints: `127.0.0.1:${engine.port}`, timeout: '60s' })
  const leasehold = await Leasehold.open(store, { holder: 'bench' })
  const client = new EtcdClient(engine.port)
  const lease = await client.grant(600)
  const ours = await storePair(store)
  const locked: Pair = async (key) => {
    const lock = await leasehold.lock(key, { ttl: '60s' })
    await lock.release()
  }
  const raw: Pair = async (key) => client.free(key, await client.take(key, 'bench', lease))
  const service: Pair = async (key) => client.unlock(await client.lock(key, lease))
  const ownLease: Pair = async (key) => {
    const own = await client.grant(60)
    await client.lock(key, own)
    await client.revoke(own)
  }
  const puts: Pair = async (key) => {
    // The pair of a key that nobody else locks.
    await client.put(`put/${key}`, lease)
    await client.put(`put/${key}`, lease)
  }
  const pids = [engine.pid]
  for (const [inFlight, pairs, theirPairs, goal] of [
    [64, 12_800, 1280, 7],
    [512, 51_200, 1536, 30],
    [1, 200, 200, undefined],
  ] as const) {
    const run = (pair: Pair, count: number) => async () => ({
      value: await pairsPerSecond(pair, inFlight, count),
      count,
    })
    const peer = (name: string, pair: Pair, least: number | undefined): Peer => {
      return { name, run: run(pair, theirPairs), pids, goal: least }
    }
    const sequential = [
      // At most 1.4 times as long.
      { ...peer('two puts', puts, 1 / 1.4), limit: true as const },
      peer('Lock service, a lease for each', ownLease, undefined),
    ]
    rows.push(
      ...(await compare({
        name: `lock + unlock, ${inFlight} in flight`,
        unit: 'pairs/s',
        better: 'more',
        ours: [
          { name: 'client', run: run(locked, pairs), pids },
          { name: 'store', run: run(ours, pairs), pids },
        ],
        peers: [
          peer('raw transactions', raw, goal),
          peer('Lock service', service, goal ?? 1.5),
          ...(inFlight === 1 ? sequential : []),
        ],
      })),
    )
  }
  await leasehold.close()
  await store.close()
  client.close()
  await engine.end()
}
console.log(JSON.stringify(rows))
