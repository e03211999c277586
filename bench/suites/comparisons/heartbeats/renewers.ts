import { remoteStore } from 'leasehold/remote'
import { EtcdClient } from '../../../engines/etcd-client.js'
import { fillEtcd, fillOurs, fillRedis } from '../../../engines/fill.js'
import { loadPeer } from '../../../engines/peer-library.js'
import { startEtcd, startRedis } from '../../../engines/start.js'
import { startServer } from '../../parts/remote/processes.js'

const TTL = 600_000
const PEXPIRE_IF_MINE =
  'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) else return 0 end'

/** Returns how many of the keys were still ours. */
const PEXPIRE_ALL = `
local done = 0
for _, key in ipairs(KEYS) do
  if redis.call("get", key) == ARGV[1] then done = done + redis.call("pexpire", key, ARGV[2]) end
end
return done`

/** An engine with many live leases. Each renewal of one of them is a separate request. */
export interface Renewer {
  readonly name: string
  readonly pid: number
  renew(number: number): Promise<unknown>
  /** Renews many in one call, if the engine can. */
  renewMany?(numbers: readonly number[]): Promise<unknown>
  end(): Promise<void>
}

export async function ourRenewer(leases: number): Promise<Renewer> {
  const server = await startServer('file')
  const store = await remoteStore(server.url)
  const ids = await fillOurs(store, { count: leases, ttl: TTL, prefix: 'live/' })
  const renewed = async (some: readonly string[]) => {
    if ((await store.renew(some)).lost.length > 0) throw new Error('lost')
  }
  return {
    name: 'our server',
    pid: server.pid,
    renew: (number) => renewed([ids[number % leases]!]),
    renewMany: (numbers) => renewed(numbers.map((number) => ids[number % leases]!)),
    end: async () => {
      await store.close()
      await server.end()
    },
  }
}

/** In memory only, because it would otherwise write each renewal to the disk. */
export async function redisRenewer(leases: number): Promise<Renewer | undefined> {
  const engine = await startRedis(false)
  if (!engine) return undefined
  const { Redis } = await loadPeer('ioredis')
  const redis = new Redis({ port: engine.port, enableAutoPipelining: true })
  redis.defineCommand('extend', { numberOfKeys: 1, lua: PEXPIRE_IF_MINE })
  redis.defineCommand('extendAll', { lua: PEXPIRE_ALL })
  await fillRedis(redis, { count: leases, ttl: TTL, prefix: 'live/' })
  return {
    name: 'Redis, PEXPIRE by a compare script',
    pid: engine.pid,
    renew: async (number) => {
      const done = await redis.extend(`live/${number % leases}`, 'bench', TTL)
      if (done !== 1) throw new Error('lost')
    },
    renewMany: async (numbers) => {
      const keys = numbers.map((number) => `live/${number % leases}`)
      const done = await redis.extendAll(keys.length, ...keys, 'bench', TTL)
      if (done !== keys.length) throw new Error('lost')
    },
    end: async () => {
      redis.disconnect()
      await engine.end()
    },
  }
}

export async function etcdRenewer(leases: number): Promise<Renewer | undefined> {
  const engine = await startEtcd()
  if (!engine) return undefined
  const client = new EtcdClient(engine.port)
  const ids = await fillEtcd(client, { count: leases, ttl: TTL })
  const stream = client.keepAlives()
  return {
    name: 'etcd keepalive',
    pid: engine.pid,
    renew: async (number) => {
      if (!(await stream.renew(ids[number % leases]!))) throw new Error('lost')
    },
    end: async () => {
      stream.end()
      client.close()
      await engine.end()
    },
  }
}
