/**
 * How fast a key passes from holder to holder, and whether in the order of arrival. The libraries
 * keep their own retry settings. All waiters are in one process, which is a disadvantage for those
 * that poll.
 */

import { startEtcd, startPostgres, startRedis, startZookeeper } from '../../../engines/start.js'
import { openAsyncMutex } from '../../../lockers/in-process.js'
import { LOCKERS, type Locker, type LockerName, onSameEngine } from '../../../lockers/index.js'
import { compareFigures, type Peer } from '../../../measure/compare.js'
import type { Row } from '../../../measure/rows.js'
import { startServer } from '../../parts/remote/processes.js'
import { inQueue, openMany, queueFigures, WAITERS } from './waiter-queue.js'

const TTL = 30_000
const opened: Locker[] = []

function candidate(name: string, lockers: readonly Locker[], pids: readonly number[]): Peer {
  opened.push(...lockers)
  return inQueue(name, lockers, pids)
}

async function on(
  engine: { readonly port: number; readonly pid: number } | undefined,
  names: readonly LockerName[],
): Promise<Peer[]> {
  if (!engine) return []
  return Promise.all(
    names.map(async (name) => {
      const lockers = await openMany(() => LOCKERS[name]({ port: engine.port, ttl: TTL }))
      return candidate(name, lockers, [engine.pid])
    }),
  )
}

async function compare(
  what: string,
  ours: readonly Peer[],
  peers: readonly Peer[],
): Promise<Row[]> {
  const rows = await compareFigures({ name: what, figures: queueFigures(what), ours, peers })
  return rows.filter(onSameEngine)
}

const [memory, file] = await Promise.all([startServer('memory'), startServer('file')])
const [redis, postgres] = await Promise.all([startRedis(false), startPostgres()])
const [etcd, zookeeper] = await Promise.all([startEtcd(), startZookeeper()])
const mutex = await openAsyncMutex()
const bound: Peer = {
  ...candidate('a mutex of the process', Array(WAITERS + 1).fill(mutex), []),
  limit: true,
}

const polling: readonly LockerName[] = [
  'redis-semaphore',
  'redlock 4',
  'redlock 5',
  'verrou',
  'simple-redis-mutex',
]
const rows = await compare(
  'in memory',
  [...(await on(memory, ['our server'])), ...(await on(redis, ['our Redis store']))],
  [...(await on(redis, polling)), ...(await on(postgres, ['advisory-lock'])), bound],
)
rows.push(
  ...(await compare(
    'on the disk',
    [
      ...(await on(file, ['our server'])),
      ...(await on(etcd, ['our etcd store'])),
      ...(await on(zookeeper, ['our ZooKeeper store'])),
    ],
    [
      ...(await on(etcd, ['etcd Lock service', 'etcd3 election'])),
      ...(await on(zookeeper, ['ZooKeeper recipe'])),
    ],
  )),
)
await Promise.all(opened.map((locker) => locker.close()))
await Promise.all([memory, file, redis, postgres, etcd, zookeeper].map((one) => one?.end()))
console.log(JSON.stringify(rows))
