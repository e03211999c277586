/**
 * Lock and unlock on etcd, against the least that a lock in etcd can be: a transaction that puts a
 * key if it is free, and one that deletes it if it is still one's own, on the same gRPC library with
 * messages written by hand; and against the lock of etcd3. All of it is on the disk before it is
 * answered.
 *
 * What ours does beside: a place in line, a request that can be repeated, and a note of the end.
 */
import * as grpc from '@grpc/grpc-js'
import { Leasehold } from 'leasehold'
import { etcdStore } from 'leasehold/etcd'
import { contest } from '../contest.js'
import { startEtcd } from '../engines.js'
import { EtcdClient } from '../etcd-client.js'
import { openEtcd3 } from '../lockers/etcd.js'
import type { Row } from '../rows.js'
import { type Pair, pairsPerSecond, storePair } from '../server/pairs.js'

const rows: Row[] = []
const engine = await startEtcd()
if (engine) {
  const store = etcdStore({ grpc, endpoints: `127.0.0.1:${engine.port}`, timeout: '60s' })
  const leasehold = await Leasehold.open(store, { holder: 'bench' })
  const client = new EtcdClient(engine.port)
  const lease = await client.grant(600)
  const etcd3 = await openEtcd3({ port: engine.port, ttl: 60_000 })
  const ours = await storePair(store)
  const locked: Pair = async (key) => {
    const lock = await leasehold.lock(key, { ttl: '60s' })
    await lock.release()
  }
  const raw: Pair = async (key) => client.free(key, await client.take(key, 'bench', lease))
  const theirs: Pair = async (key) => {
    const lock = await etcd3.lock(key)
    await lock.release()
  }
  const pids = [engine.pid]
  for (const [inFlight, pairs] of [
    [64, 1920],
    [1, 200],
  ] as const) {
    const run = (pair: Pair) => async () => ({
      value: await pairsPerSecond(pair, inFlight, pairs),
      count: pairs,
    })
    const isBusy = inFlight > 1
    rows.push(
      ...(await contest({
        name: `claim + release, ${inFlight} in flight`,
        unit: 'pairs/s',
        better: 'more',
        ours: [
          { name: 'store', run: run(ours), pids },
          { name: 'client', run: run(locked), pids },
        ],
        peers: [
          {
            name: 'raw transactions',
            run: run(raw),
            pids,
            ...(isBusy && { goal: 0.9 }),
          },
          { name: 'etcd3 lock', run: run(theirs), pids, ...(isBusy && { goal: 1.5 }) },
        ],
      })),
    )
  }
  await leasehold.close()
  await store.close()
  await etcd3.close()
  client.close()
  await engine.end()
}
console.log(JSON.stringify(rows))
