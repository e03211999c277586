/**
 * 32 waiters for one key of etcd; each holds it for 1 ms in turn. Our waiters are clients of one
 * store, so they share one replica and one connection. Waiters of the Lock service have one
 * connection each. All are in one process.
 */
import { etcdStore } from 'leasehold/etcd'
import { startEtcd } from '../../../engines/start.js'
import { openEtcdService } from '../../../lockers/etcd.js'
import { clientLocker } from '../../../lockers/ours.js'
import { compareFigures } from '../../../measure/compare.js'
import type { Row } from '../../../measure/rows.js'
import { inQueue, openMany, queueFigures } from '../../comparisons/contended/waiter-queue.js'

const TTL = 30_000

const rows: Row[] = []
const engine = await startEtcd()
if (engine) {
  const { port, pid } = engine
  const store = await etcdStore({ endpoints: `127.0.0.1:${port}` })
  const ours = await openMany(() => clientLocker(store, TTL, async () => {}))
  const theirs = await openMany(() => openEtcdService({ port, ttl: TTL }))
  const what = '32 waiters'
  rows.push(
    ...(await compareFigures({
      name: what,
      figures: queueFigures(what),
      ours: inQueue('clients of one store', ours, [pid]),
      peers: [{ ...inQueue('Lock service', theirs, [pid]), goal: 2 }],
    })),
  )
  await Promise.all([...ours, ...theirs].map((locker) => locker.close()))
  await store.close()
  await engine.end()
}
console.log(JSON.stringify(rows))
