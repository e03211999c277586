import type { Row } from '../measure/rows.js'
import { openEtcd3, openEtcd3Election, openEtcdService } from './etcd.js'
import type { OpenLocker } from './locker.js'
import {
  openElection,
  openOnEtcd,
  openOnPostgres,
  openOnRedis,
  openOnZookeeper,
  openRemote,
  openTiedElection,
} from './ours.js'
import { openAdvisoryByHand, openAdvisoryLock } from './postgres.js'
import {
  openRaw,
  openRedisSemaphore,
  openRedlock4,
  openRedlock5,
  openSimpleRedisMutex,
  openVerrou,
} from './redis.js'
import { openZookeeper } from './zookeeper.js'

export type { Held, Locker, LockerOptions, OpenLocker } from './locker.js'

/** All lockers that need an engine, by their names in the tables. */
export const LOCKERS = {
  'our server': openRemote,
  'our election': openElection,
  'our election, tied': openTiedElection,
  'our Redis store': openOnRedis,
  'our PostgreSQL store': openOnPostgres,
  'our etcd store': openOnEtcd,
  'our ZooKeeper store': openOnZookeeper,
  'raw ioredis': openRaw,
  'redis-semaphore': openRedisSemaphore,
  'redlock 4': openRedlock4,
  'redlock 5': openRedlock5,
  verrou: openVerrou,
  'simple-redis-mutex': openSimpleRedisMutex,
  etcd3: openEtcd3,
  'etcd3 election': openEtcd3Election,
  'etcd Lock service': openEtcdService,
  'advisory-lock': openAdvisoryLock,
  'PostgreSQL advisory lock by hand': openAdvisoryByHand,
  'ZooKeeper recipe': openZookeeper,
} satisfies Record<string, OpenLocker>

export type LockerName = keyof typeof LOCKERS

export const REDIS_LIBRARIES: readonly LockerName[] = [
  'raw ioredis',
  'redis-semaphore',
  'redlock 4',
  'redlock 5',
  'verrou',
  'simple-redis-mutex',
]

/** The lockers on each engine. */
const ON: Readonly<Record<string, readonly string[]>> = {
  'our Redis store': REDIS_LIBRARIES,
  'our PostgreSQL store': ['advisory-lock'],
  'our etcd store': ['etcd3', 'etcd3 election', 'etcd Lock service'],
  'our ZooKeeper store': ['ZooKeeper recipe'],
}

/** Whether a row compares a store of ours on an engine with others on the same engine. */
export function onSameEngine({ name, peerName }: Pick<Row, 'name' | 'peerName'>): boolean {
  const store = Object.keys(ON).find((one) => name.endsWith(one))
  return store === undefined || peerName === undefined || ON[store]!.includes(peerName)
}
