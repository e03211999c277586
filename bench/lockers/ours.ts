import { Redis } from 'ioredis'
import { Leasehold } from 'leasehold'
import { etcdStore } from 'leasehold/etcd'
import type { LeaseStore } from 'leasehold/port'
import { postgresStore } from 'leasehold/postgres'
import { redisStore } from 'leasehold/redis'
import { remoteStore } from 'leasehold/remote'
import { zookeeperStore } from 'leasehold/zookeeper'
import pg from 'pg'
import { type Locker, locker, type OpenLocker } from './locker.js'

/** Our client on any store. It closes the store too, unless `end` does something else. */
export async function clientLocker(
  store: LeaseStore,
  ttl: number,
  end = () => store.close(),
): Promise<Locker> {
  const leasehold = await Leasehold.open(store)
  const lock: Locker['lock'] = async (key) => {
    const held = await leasehold.lock(key, { ttl })
    return { release: () => held.release(), believes: () => held.held }
  }
  return locker(lock, async () => {
    await leasehold.close()
    await end()
  })
}

/** Through a server, over one connection. */
export const openRemote: OpenLocker = async ({ port, ttl }) =>
  clientLocker(await remoteStore(`http://127.0.0.1:${port}`), ttl)

async function electionLocker(store: LeaseStore, ttl: number): Promise<Locker> {
  const leasehold = await Leasehold.open(store)
  const campaign: Locker['lock'] = async (key) => {
    const term = await leasehold.election(key, { ttl }).campaign()
    return { release: () => term.resign(), believes: () => term.leading }
  }
  return locker(campaign, async () => {
    await leasehold.close()
    await store.close()
  })
}

/** An election through a server. */
export const openElection: OpenLocker = async ({ port, ttl }) =>
  electionLocker(await remoteStore(`http://127.0.0.1:${port}`), ttl)

/** Through a server, with leases that end when their connection closes. */
export const openTiedElection: OpenLocker = async ({ port, ttl }) =>
  electionLocker(await remoteStore(`http://127.0.0.1:${port}`, { tied: true }), ttl)

/** Our library on an engine that others use too, without our server. */
export const openOnRedis: OpenLocker = async ({ port, ttl }) => {
  const redis = new Redis({ port, maxRetriesPerRequest: null })
  redis.on('error', () => {})
  const { lock, close } = await clientLocker(await redisStore(redis), ttl)
  return locker(lock, async () => {
    await close()
    redis.disconnect()
  })
}

export const openOnPostgres: OpenLocker = async ({ port, ttl }) => {
  const pool = new pg.Pool({ connectionString: `postgres://postgres@127.0.0.1:${port}/postgres` })
  pool.on('error', () => {})
  const { lock, close } = await clientLocker(await postgresStore(pool), ttl)
  return locker(lock, async () => {
    await close()
    await pool.end()
  })
}

export const openOnEtcd: OpenLocker = async ({ port, ttl }) =>
  clientLocker(await etcdStore({ endpoints: `127.0.0.1:${port}` }), ttl)

export const openOnZookeeper: OpenLocker = async ({ port, ttl }) =>
  clientLocker(await zookeeperStore({ servers: `127.0.0.1:${port}`, timeout: '20s' }), ttl)
