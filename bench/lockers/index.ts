import { openEtcd3, openEtcd3Election, openEtcdService } from './etcd.js'
import type { OpenLocker } from './locker.js'
import { openElection, openRemote, openTiedElection } from './ours.js'
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

/** All who need an engine, by the names that the tables call them. */
export const LOCKERS = {
  'our server': openRemote,
  'our election': openElection,
  'our election, tied': openTiedElection,
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
