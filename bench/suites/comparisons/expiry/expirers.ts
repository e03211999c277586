import { etcdStore } from 'leasehold/etcd'
import type { LeaseStore } from 'leasehold/port'
import { remoteStore } from 'leasehold/remote'
import { EtcdClient } from '../../../engines/etcd-client.js'
import { type Batch, fillEtcd, fillOurs, fillRedis } from '../../../engines/fill.js'
import { loadPeer } from '../../../engines/peer-library.js'
import { startEtcd, startRedis } from '../../../engines/start.js'
import { startServer } from '../../parts/remote/processes.js'

const PEXPIRE_IF_MINE =
  'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) else return 0 end'

/** An engine as this suite uses it. Each lease here has one key. */
export interface Expirer {
  readonly name: string
  /** Leases `${prefix}0`, `${prefix}1`, … */
  fill(prefix: string, count: number, ttl: Batch['ttl']): Promise<void>
  /** How long before a deadline to start filling, so that ten thousand leases can share it. */
  readonly lead: number
  /** A ttl is rounded up to a multiple of this many milliseconds. */
  readonly step: number
  /** One lease that will not be renewed. */
  grant(key: string, ttl: number): Promise<void>
  /** Calls back for each key that ends from now on. */
  watch(gone: (key: string) => void): Promise<void>
  /** The number of keys left with this prefix; at least one if there are any. */
  left(prefix: string): Promise<number>
  /** Renews a lease of the last `fill` of that prefix. Returns whether it still existed. */
  renew(prefix: string, number: number): Promise<boolean>
  end(): Promise<void>
}

/** On the disk: each expiry is written before anyone is notified. */
export async function ourExpirer(): Promise<Expirer> {
  const server = await startServer('file')
  return expirerOf('our server', await remoteStore(server.url), server)
}

/** A replica in this process, on a log in etcd. */
export async function ourEtcdExpirer(): Promise<Expirer | undefined> {
  const engine = await startEtcd()
  if (!engine) return undefined
  const store = await etcdStore({ endpoints: `127.0.0.1:${engine.port}`, timeout: '60s' })
  return expirerOf('our etcd store', store, engine)
}

function expirerOf(name: string, store: LeaseStore, engine: { end(): Promise<void> }): Expirer {
  const leases = new Map<string, string[]>()
  return {
    name,
    lead: 2000,
    step: 1,
    fill: async (prefix, count, ttl) => {
      leases.set(prefix, await fillOurs(store, { count, ttl, prefix }))
    },
    grant: async (key, ttl) => {
      await store.grant({ holder: 'bench', ttl, claims: [{ key }] })
    },
    watch: async (gone) => {
      store.watch({ prefix: 'lag/' }, (notice) => {
        if (notice.type !== 'events') return
        for (const { type, key } of notice.events) if (type === 'removed') gone(key)
      })
    },
    left: async (prefix) => (await store.read({ prefix, limit: 1 })).keys.length,
    renew: async (prefix, number) =>
      (await store.renew([leases.get(prefix)![number]!])).lost.length === 0,
    end: async () => {
      await store.close()
      await engine.end()
    },
  }
}

/** On the disk too, with notifications of expired keys, which are off by default. */
export async function redisExpirer(): Promise<Expirer | undefined> {
  const engine = await startRedis()
  if (!engine) return undefined
  const { Redis } = await loadPeer('ioredis')
  const redis = new Redis({ port: engine.port, enableAutoPipelining: true })
  const listener = new Redis({ port: engine.port })
  await redis.config('SET', 'notify-keyspace-events', 'Ex')
  redis.defineCommand('extend', { numberOfKeys: 1, lua: PEXPIRE_IF_MINE })
  const ttls = new Map<string, Batch['ttl']>()
  let before = 0
  return {
    name: 'Redis keys',
    lead: 2000,
    step: 1,
    fill: async (prefix, count, ttl) => {
      ttls.set(prefix, ttl)
      before = await redis.dbsize()
      await fillRedis(redis, { count, ttl, prefix })
    },
    grant: async (key, ttl) => {
      await redis.set(key, 'bench', 'PX', ttl)
    },
    watch: async (gone) => {
      await listener.psubscribe('__keyevent@0__:expired')
      listener.on('pmessage', (_pattern: string, _channel: string, key: string) => gone(key))
    },
    // The leases of earlier fills are renewed and stay.
    left: async () => (await redis.dbsize()) - before,
    renew: async (prefix, number) =>
      (await redis.extend(`${prefix}${number}`, 'bench', ttls.get(prefix))) === 1,
    end: async () => {
      redis.disconnect()
      listener.disconnect()
      await engine.end()
    },
  }
}

export async function etcdExpirer(): Promise<Expirer | undefined> {
  const engine = await startEtcd()
  if (!engine) return undefined
  const client = new EtcdClient(engine.port)
  const stream = client.keepAlives()
  const leases = new Map<string, Awaited<ReturnType<typeof fillEtcd>>>()
  return {
    name: 'etcd leases',
    lead: 6000,
    step: 1000,
    fill: async (prefix, count, ttl) => {
      leases.set(prefix, await fillEtcd(client, { count, ttl, prefix }))
    },
    grant: async (key, ttl) => client.put(key, await client.grant(Math.ceil(ttl / 1000))),
    watch: (gone) => client.watchDeletes('lag/', gone),
    left: (prefix) => client.count(prefix),
    renew: (prefix, number) => stream.renew(leases.get(prefix)![number]!),
    end: async () => {
      stream.end()
      client.close()
      await engine.end()
    },
  }
}
